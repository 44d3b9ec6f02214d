#!/bin/sh
# Checks the Helm chart and packs it: `tools/chart.sh FOLDER [IMAGE]`. IMAGE is the repository of the
# image that the packed chart installs. HELM names the program.
set -eu
cd "$(dirname "$0")/.."
chart=deploy/helm/keda-gpu-scaler
"$HELM" lint --strict --quiet $chart
staged=$1/chart/keda-gpu-scaler
rm -rf "$1/chart"
mkdir -p "$1/chart"
cp -R $chart "$staged"
if [ -n "${2:-}" ]; then
    sed 's|^\(  repository: \)""$|\1'"$2"'|' $chart/values.yaml > "$staged/values.yaml"
    # Below the annotations, which Chart.yaml ends with.
    printf '  artifacthub.io/images: |\n    - name: keda-gpu-scaler\n      image: %s:%s\n' \
        "$2" "$(sed -n 's/^appVersion: //p' $chart/Chart.yaml)" >> "$staged/Chart.yaml"
fi
"$HELM" package --destination "$1" "$staged" >/dev/null
rm -rf "$1/chart"
