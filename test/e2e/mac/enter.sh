# Hides what macOS does not have, and runs the rest of the arguments: $1 is where the doubles find /proc.
mount --bind /proc "$1" &&
  mount -t tmpfs nothing /proc &&
  mount --bind /dev/null /usr/bin/false || exit 125
[ -z "$SIMULATED_HOST" ] || hostname "$SIMULATED_HOST" || exit 125
unset SIMULATED_HOST
shift
exec "$@"
