#!/usr/bin/env bash
# Fetches the report of the base branch's last successful run. Where there is none it says so, and nothing is compared.
#
# GH_TOKEN, GH_REPO: for gh. BRANCH, ARTIFACT: whose report. WORKFLOW_REF: github.workflow_ref, the workflow that this is.
# DIRECTORY: of this run's report; the other one goes to ../base/report.xml.
set -euo pipefail

without() {
  echo "::notice title=pytest-dscore::Nothing is compared with $BRANCH: $1"
  exit 0
}

# A workflow command ends at a line's end; what gh says is one line in the log.
said() {
  tr '\r\n' '  ' <"$problems" | cut -c -300
}

problems="$(mktemp)"
trap 'rm -f "$problems"' EXIT
base="$(dirname "$DIRECTORY")/base"

command -v gh >/dev/null || without "gh, GitHub's command line client, is not installed on this runner."

# owner/repository/.github/workflows/NAME.yml@REF
workflow="${WORKFLOW_REF%%@*}"
workflow="${workflow##*/}"

# Pushes only: a fork's branch may have the name of the base branch, and its run is then listed under it, too.
run="$(gh run list --workflow "$workflow" --branch "$BRANCH" --event push --status success --limit 1 \
  --json databaseId --jq '.[0].databaseId // empty' 2>"$problems")" || without "its runs cannot be listed ($(said))."
[ -n "$run" ] || without "$workflow has no successful run there."

mkdir -p "$base"
gh run download "$run" --name "$ARTIFACT" --dir "$base" 2>"$problems" ||
  without "its last successful run, $run, has no artifact $ARTIFACT that can be had ($(said))."
[ -f "$base/report.xml" ] || without "the artifact $ARTIFACT of run $run holds no report.xml."
echo "Compared with run $run of $BRANCH."
