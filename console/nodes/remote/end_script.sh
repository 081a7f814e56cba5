# $1: mark of a script (NAME=VALUE), $2: pid of its bash. Ends it, its descendants and orphans: TERM, then KILL.
mark=$1
found=$(lab_family "$mark" "$2")
[ -z "$found" ] || kill -TERM $found 2>/dev/null
for _ in {1..25}; do
  found=$(lab_family "$mark" $found)
  [ -n "$found" ] || exit 0
  sleep 0.2
done
for _ in {1..10}; do
  kill -KILL $found 2>/dev/null
  sleep 0.1
  found=$(lab_family "$mark" $found)
  [ -n "$found" ] || exit 0
done
echo "$found"
exit 1
