#!/usr/bin/env bash
# Writes the report as a comment on the pull request, or brings the comment that it wrote before up to date.
#
# GH_TOKEN, GH_REPO: for gh. PULL_REQUEST: its number. AUTHOR: login of the token's account. DIRECTORY: of report.md.
set -euo pipefail

marker='<!-- dscore-report -->'
body="$DIRECTORY/report.md"

problems="$(mktemp)"
trap 'rm -f "$problems"' EXIT

# The gate's verdict stands whether or not a comment can be written.
give_up() {
  local why
  why="$(tr '\r\n' '  ' <"$problems" | cut -c -300)"
  if grep -q -e 'HTTP 403' -e 'Resource not accessible' "$problems"; then
    echo "::notice title=pytest-dscore::No comment: the token may not write one (it needs pull-requests: write, and for" \
      "pull requests from forks it is read-only). The report is in the summary of this run."
  else
    echo "::warning title=pytest-dscore::No comment: $1 ($why). The report is in the summary of this run."
  fi
  exit 0
}

case "$PULL_REQUEST" in
'' | *[!0-9]*)
  echo "::error title=pytest-dscore::PULL_REQUEST is no number."
  exit 2
  ;;
esac

if ! command -v gh >/dev/null; then
  echo "gh is not installed on this runner" >"$problems"
  give_up "GitHub's command line client is missing"
fi

# Of this account only, and only what begins with the marker: somebody may quote it.
export MARKER="$marker" AUTHOR
comments="$(gh api --paginate "repos/$GH_REPO/issues/$PULL_REQUEST/comments?per_page=100" \
  --jq '.[] | select(.user.login == env.AUTHOR and ((.body // "") | startswith(env.MARKER))) | .id' 2>"$problems")" ||
  give_up "the comments cannot be read"
comment="${comments%%$'\n'*}"

if [ -n "$comment" ]; then
  gh api --silent --method PATCH "repos/$GH_REPO/issues/comments/$comment" -F "body=@$body" 2>"$problems" ||
    give_up "comment $comment cannot be brought up to date"
  echo "Comment $comment is up to date."
else
  gh api --silent --method POST "repos/$GH_REPO/issues/$PULL_REQUEST/comments" -F "body=@$body" 2>"$problems" ||
    give_up "it cannot be written"
  echo "A comment was written."
fi
