#!/usr/bin/env bash
# Runs the gate and keeps its exit code for verdict.sh, so that a gate that failed is reported, too.
#
# PYTEST_ARGS, WORKING_DIRECTORY: as the action's inputs.
# Outputs: directory, a new one; exit-code; and reported=true if report.xml is in it.
set -euo pipefail

cd "$WORKING_DIRECTORY"

# A new directory: a report that an earlier step left must not pass for this run's.
directory="$(mktemp -d "$RUNNER_TEMP/dscore-XXXXXX")/report"
mkdir "$directory"
echo "directory=$directory" >>"$GITHUB_OUTPUT"

# Quotes are understood as in a shell, and nothing is expanded or run.
parsed="$(python -c 'import os, shlex; print("\n".join(shlex.split(os.environ["PYTEST_ARGS"])))')"
arguments=()
if [ -n "$parsed" ]; then
  mapfile -t arguments <<<"$parsed"
fi

code=0
pytest --dscore --junitxml="$directory/report.xml" ${arguments[@]+"${arguments[@]}"} || code=$?
echo "exit-code=$code" >>"$GITHUB_OUTPUT"

if [ ! -s "$directory/report.xml" ]; then
  echo "::error title=pytest-dscore::pytest ended with exit code $code and left no report, see its output above."
  # Whatever it said: without a report nothing was judged.
  [ "$code" -ne 0 ] || code=1
  exit "$code"
fi
echo "reported=true" >>"$GITHUB_OUTPUT"
