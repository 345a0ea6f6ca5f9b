/**
 * What commands run: they write down that they began, with which others they saw alive, and that
 * they ended. Only what a shell has built in, so that it costs next to nothing.
 * Arguments: key, run, how long, and whether to leave a child behind that outlives the command.
 */
export const WITNESS = `
key=$1 run=$2 fence=$LEASEHOLD_FENCE
start_of() {
  { IFS= read -r line < "/proc/$1/stat"; } 2>/dev/null || return 1
  set -- \${line##*) }
  case $1 in Z|X) return 1;; esac
  start=\${20}
}
start_of $$
mine="$$:$start"
echo "$mine" >> "$OUT/pids-$key"
beside=
while IFS= read -r other; do
  [ "$other" = "$mine" ] && continue
  if start_of "\${other%%:*}" && [ "$start" = "\${other#*:}" ]; then beside="$beside $other"; fi
done < "$OUT/pids-$key"
echo "begin $key $run $fence $mine$beside" >> "$OUT/witness"
if [ "$4" = child ]; then
  sleep 3 &
  start_of $! && echo "$!:$start" >> "$OUT/pids-$key"
fi
sleep "$3"
echo "end $key $run $fence $mine" >> "$OUT/witness"
`
