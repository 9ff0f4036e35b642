#!/usr/bin/env bash
# Writes report.md and report.html beside report.xml, the step's summary, and annotations at the thresholds.
#
# DIRECTORY: of report.xml; the base branch's is ../base/report.xml if there is one. WORKING_DIRECTORY: the input.
set -euo pipefail

cd "$WORKING_DIRECTORY"
base="$(dirname "$DIRECTORY")/base/report.xml"

# Exit code 1 says that a gate failed, which verdict.sh will repeat; 2 that there is nothing to report.
report() {
  local code=0
  dscore report "$DIRECTORY/report.xml" "$@" || code=$?
  [ "$code" -le 1 ]
}

# `dscore report` adds to the step's summary each time that it runs: the last call is enough.
summary="${GITHUB_STEP_SUMMARY-}"
unset GITHUB_STEP_SUMMARY

set --
if [ -f "$base" ]; then
  set -- --baseline "$base"
  if ! report "$@" --format json --output "$RUNNER_TEMP/dscore-comparison.json"; then
    echo "::notice title=pytest-dscore::Nothing is compared: the base branch's report cannot be used, see the log."
    set --
  fi
fi

report "$@" --format html --output "$DIRECTORY/report.html"
report "$@" --format github
if [ -n "$summary" ]; then
  export GITHUB_STEP_SUMMARY="$summary"
fi
report "$@" --format markdown --output "$DIRECTORY/report.md"
