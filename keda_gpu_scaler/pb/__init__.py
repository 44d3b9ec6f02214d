"""Code generated from `proto/externalscaler.proto` by `make proto`; never edited by hand."""
