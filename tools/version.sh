#!/bin/sh
# The version stands in keda_gpu_scaler/__init__.py. `tools/version.sh` writes it into whatever else has
# to name it, `tools/version.sh --check` fails where that names another one, and
# `tools/version.sh --notes TAG` prints what CHANGELOG.md says of it, if TAG is its tag.
set -eu
cd "$(dirname "$0")/.."
version=$(sed -n 's/^__version__ = "\(.*\)"$/\1/p' keda_gpu_scaler/__init__.py)
stated() {
    sed -e 's/^\(version: "\{0,1\}\)[^"]*/\1'"$version"'/' \
        -e 's/^\(appVersion: "\{0,1\}\)[^"]*/\1'"$version"'/' \
        -e 's/\(app\.kubernetes\.io\/version: "\{0,1\}\)[^"]*/\1'"$version"'/' \
        -e 's/\(helm\.sh\/chart: keda-gpu-scaler-\)[^"]*/\1'"$version"'/' \
        -e 's/\(image: "\{0,1\}keda-gpu-scaler:\)[^"]*/\1'"$version"'/' \
        -e 's/^\(Version \)[0-9]*\.[0-9]*\.[0-9]*/\1'"$version"'/' \
        -e 's/\([ /]keda-gpu-scaler:\)[0-9]*\.[0-9]*\.[0-9]*/\1'"$version"'/g' "$1"
}
if [ "${1:-}" = --notes ]; then
    [ "$2" = "v$version" ] \
        || { printf "the tag is '%s', and %s says v%s\n" "$2" keda_gpu_scaler/__init__.py "$version" >&2; exit 1; }
    awk '/^## / { found = index($0, "## ['"$version"']") == 1; next } found' CHANGELOG.md | grep . \
        || { echo "CHANGELOG.md has no section [$version]" >&2; exit 1; }
    exit
fi
for file in deploy/helm/keda-gpu-scaler/Chart.yaml deploy/artifacthub/artifacthub-pkg.yml deploy/kustomize/*.yaml deploy/kustomize/*/*.yaml \
    examples/quickstart/simulator.yaml deploy/helm/keda-gpu-scaler/README.md \
    README.md examples/observe.yaml docs/quickstart.md docs/quickstart.*.md; do
    [ -e "$file" ] || continue
    if [ "${1:-}" = --check ]; then
        stated "$file" | diff "$file" - \
            || { echo "$file names another version than $version: run make version" >&2; exit 1; }
    else
        text=$(stated "$file")
        printf '%s\n' "$text" > "$file"
    fi
done
