"""The Helm chart and the Kustomize base, rendered by the real programs.

charts      the programs, what they render, the cases
shapes      what a rendered release consists of
schema      the settings' part of the chart's schema, made from the settings themselves
comments    the values and what their comments say
kustomized  the base, as it follows from the chart's defaults
regenerate  writes everything of this that is generated
"""
