#!/usr/bin/env bash
# Ends with the gate's exit code.
#
# EXIT_CODE: pytest's.
set -euo pipefail

case "$EXIT_CODE" in
'' | *[!0-9]*)
  echo "::error title=pytest-dscore::The gate left no exit code."
  exit 1
  ;;
esac
exit "$EXIT_CODE"
