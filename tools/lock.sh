#!/bin/sh
# Resolves pyproject.toml into the three locks, for every platform and every Python from the oldest
# supported one: `tools/lock.sh` writes them (more words go to uv, such as --upgrade), and
# `tools/lock.sh --check` fails where they do not fit pyproject.toml any more.
set -eu
cd "$(dirname "$0")/.."
uv=.cache/uv/bin/uv
resolve() { # the lock it begins from and writes, then further options of uv
    into=$1
    shift
    $uv pip compile pyproject.toml --all-extras --quiet --no-header --no-annotate --no-emit-index-url \
        --universal --python-version 3.11 -o "$into" "$@" >/dev/null
}
write() { # the lock, what it is, then further options of uv
    lock=$1 what=$2
    shift 2
    cp "$lock" ".cache/$lock" 2>/dev/null || true
    resolve ".cache/$lock" --generate-hashes "$@"
    { echo "# $what"; echo "# Made by \`make lock\` from pyproject.toml; do not edit."; sed '/^#/d' ".cache/$lock"; } > "$lock"
}
check() { # the lock, what it follows from, then further options of uv
    lock=$1 from=$2
    shift 2
    # Versions only: new hashes appear whenever a project uploads one more wheel of the same version.
    sed -e '/^[ #]/d' -e 's/ *\\$//' "$lock" > .cache/locked
    cp .cache/locked .cache/resolved
    resolve .cache/resolved "$@"
    diff .cache/locked .cache/resolved || { echo "$lock does not fit $from: run make lock" >&2; exit 1; }
}
# pip 23.0, which Debian 12 has, takes a package that another one needs with extras only from a line with them.
runtime="--constraints requirements.lock --no-strip-extras"
mkdir -p .cache
if [ "${1:-}" = --check ]; then
    check requirements.lock pyproject.toml --group dev
    check requirements-test.lock requirements.lock --constraints requirements.lock --group test
    check requirements-runtime.lock requirements.lock $runtime
else
    # A week of age: most poisoned releases are found and withdrawn sooner.
    write requirements.lock "Every dependency and development tool, pinned with its hashes." \
        --group dev --exclude-newer '7 days' "$@"
    write requirements-test.lock "What \`make test\` needs, out of requirements.lock." \
        --constraints requirements.lock --group test
    write requirements-runtime.lock \
        "What runs the scaler and its extras, out of requirements.lock: what an image installs." \
        $runtime
fi
