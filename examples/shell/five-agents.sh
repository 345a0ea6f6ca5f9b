#!/usr/bin/env bash
# Five agents share one list of tasks. Each claims the next ready task, works on it, and goes on
# until nothing is ready (exit code 6). If an agent dies, its task goes back to the list.
#
#   leasehold task add "Fix the login test"
#   ./five-agents.sh ./work.sh        work.sh finds the task in LEASEHOLD_TASK and TITLE
set -euo pipefail

agent() {
  local name=$1 claim code
  shift
  while :; do
    code=0
    claim=$(leasehold task claim --agent "$name" --json) || code=$?
    if [ "$code" = 6 ]; then return 0; fi
    if [ "$code" != 0 ]; then return "$code"; fi
    # Without jq: the task's id and title, one per line.
    { read -r id && read -r title; } < <(node -e '
      const { task } = JSON.parse(require("fs").readFileSync(0))
      console.log(task.id + "\n" + task.title.replaceAll("\n", " "))' <<<"$claim")
    if LEASEHOLD_AGENT=$name LEASEHOLD_TASK=$id TITLE=$title "$@"; then
      leasehold task done "$id" --agent "$name" >/dev/null
    else
      leasehold task status "$id" failed --agent "$name" >/dev/null
    fi
    echo "$name $id"
  done
}

agents=()
for n in 1 2 3 4 5; do
  agent "agent-$n" "$@" &
  agents+=($!)
done
for pid in "${agents[@]}"; do wait "$pid"; done
