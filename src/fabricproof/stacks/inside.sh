#!/bin/sh
# Started by a container runtime, below rank.sh, as the first program in the image:
#   inside.sh FILE LIBRARY RAIL... -- NAME=VALUE... -- PROGRAM [ARG...]
# Writes to FILE the root that it sees, what it lacks of rails and variables, and the MPI library that
# the program has in its memory; LIBRARY is the one that is due, under the name that a site gave it.
# Plain sh: an image may have no bash.  FABRICPROOF_SYS and FABRICPROOF_DEV are for tests.
file=$1 library=$2
shift 2
sys=${FABRICPROOF_SYS:-/sys} dev=${FABRICPROOF_DEV:-/dev}

note() { echo "$*" >>"$file"; }

{ : >"$file"; } 2>/dev/null || {
    echo "inside.sh: the container cannot write ${file%/*}: mount the job's folder in it" >&2
    exit 74
}
cd "${0%/*}" || exit 74
note "root $(stat -c %d:%i /)"

may_open() { [ -r "$1" ] && [ -w "$1" ]; }

verbs() { # DEVICE: what libibverbs looks at, and what it opens
    [ -d "$sys/class/infiniband/$1" ] || note "lacks $sys/class/infiniband/$1"
    for each in "$sys"/class/infiniband_verbs/uverbs*; do
        read -r name 2>/dev/null <"$each/ibdev" && [ "$name" = "$1" ] || continue
        may_open "$dev/infiniband/${each##*/}" || note "lacks $dev/infiniband/${each##*/} that it may open"
        return
    done
    for each in "$dev"/infiniband/uverbs*; do
        ! may_open "$each" || return
    done
    note "lacks $dev/infiniband/uverbs* that it may open"
}

while [ "$1" != -- ]; do
    case $1 in
    *:*) verbs "${1%%:*}" ;;
    *) grep -q "^ *$1:" /proc/net/dev || note "lacks interface $1" ;;
    esac
    shift
done
shift
while [ "$1" != -- ]; do
    eval "now=\${${1%%=*}-}"
    [ "$now" = "${1#*=}" ] || note "lacks $1 in its environment"
    shift
done
shift

loaded() { # PID: the MPI libraries in the memory of a process and of its children
    for each in "$1" $(cat "/proc/$1/task/$1/children" 2>/dev/null); do
        grep -Eo '/[^ ]*/libmpi(ch|_abi)?\.so[.0-9]*$' "/proc/$each/maps" 2>/dev/null
    done | sort -u
}

watch() { # PID, for twenty seconds at most
    looks=0 found=""
    while [ -z "$found" ] && [ $looks -lt 200 ] && [ -d "/proc/$1" ]; do
        found=$(loaded "$1")
        looks=$((looks + 1))
        [ -n "$found" ] || sleep 0.1
    done
    [ -n "$found" ] || return
    [ "$found" != "$(readlink -f "$library")" ] || found=$library
    note "library $(echo "$found" | sed -e ':more' -e 'N' -e '$!b more' -e 's/\n/ and /g')"
}

# Nobody searches an image for the sub-folder of a suite before: OSU's has several.
for word; do
    shift
    case $word in
    /*)
        if [ ! -e "$word" ]; then
            for each in "${word%/*}"/*/"${word##*/}" "${word%/*}"/*/*/"${word##*/}"; do
                [ ! -x "$each" ] || word=$each
            done
        fi
        ;;
    esac
    set -- "$@" "$word"
done
watch $$ </dev/null >/dev/null 2>&1 &
exec "$@"
