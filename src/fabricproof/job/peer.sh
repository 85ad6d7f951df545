#!/bin/bash
# A measurement between two nodes without MPI:  rank.sh peer.sh SECONDS RAIL TOOL [ARG...]
# Rank 1 serves on its RAIL and says so in the leg's folder, which both nodes share; rank 0 measures
# from its own RAIL and prints what TOOL prints; with FABRICPROOF_BACKWARD they change places.  TOOL is iperf3, iperf, or ib_* of perftest.
# No server outlives its leg: it ends with its client, and after SECONDS at the latest.
# What goes wrong is said in one line, on stderr and in the file reason.PART.
# With FABRICPROOF_FRAME=BYTES frames of that size are tried first, by pings that may not be cut.
PATH=$PATH:/usr/sbin:/sbin
LC_ALL=C
export PATH LC_ALL
limit=$1 rail=$2 tool=$3
shift 3
sys=${FABRICPROOF_SYS:-/sys}
rank=${PMIX_RANK:-${PMI_RANK:-${OMPI_COMM_WORLD_RANK:-${SLURM_PROCID:-0}}}}
[ -z "${FABRICPROOF_BACKWARD:-}" ] || rank=$((1 - rank)) # the other end measures and sends
node=${SLURMD_NODENAME:-${HOSTNAME%%.*}}
patience=${FABRICPROOF_PEER_SECONDS:-12} # the other rank's start, on a busy node
part=${FABRICPROOF_PART:-0}
mark=$FABRICPROOF_LEG/peer.$part
server=""

fail() {
    echo "peer.sh: $1" >&2
    (set -C && echo "$1" >"$FABRICPROOF_LEG/reason.$part") 2>/dev/null # the first reason stands
    if [ "$rank" = 0 ]; then : >"$mark.done"; else announce "failed $1"; fi
    exit 3
}

announce() { echo "$1" >"$mark.new" && mv "$mark.new" "$mark"; }

last_words() { # FILE: what the tool said last, in one line
    local line said=""
    while read -r line; do case $line in *[A-Za-z]*) said=$line ;; esac; done < <(
        grep '"error"' "$1" 2>/dev/null || cat "$1" 2>/dev/null
    )
    said=${said#*\"error\":} said=${said//[$'\t\"']/}
    echo "${said::200}"
}

try_frames() { # ADDRESS: for the rank's record, "fact path frame=1500 large=2 small=2"
    local large small
    type -P ping >/dev/null || return
    small=$(answers 56 "$1") large=$(answers "$((FABRICPROOF_FRAME - 28))" "$1") # IPv4 and ICMP
    echo "fact path frame=$FABRICPROOF_FRAME large=$large small=$small" >>"$FABRICPROOF_LEG/rank.0.$part"
    [ "$small" = 0 ] || [ "$large" != 0 ] || fail "frames of $FABRICPROOF_FRAME B do not pass from $node to $1 over $rail, small ones do"
}

answers() { # BYTES ADDRESS: how many of two pings came back
    local line count=0
    while read -r line; do case $line in *" bytes from "*) count=$((count + 1)) ;; esac; done < <(
        timeout 3 ping -n -c 2 -i 0.2 -W 1 -M do -s "$1" -I "$mine" "$2" 2>/dev/null
    )
    echo "$count"
}

interfaces() {
    local each found=""
    for each in "$sys"/class/net/*/; do
        each=${each%/} each=${each##*/}
        [ "$each" = lo ] || found+="${found:+, }$each"
    done
    echo "${found:-none}"
}

own_address() { # of an interface; called otherwise on this node, or without an address, is said so
    local number name family address rest
    [ -d "$sys/class/net/$rail" ] || fail "no interface $rail on $node, which has $(interfaces)"
    type -P ip >/dev/null || fail "no ip (iproute2) on $node: the address of $rail is not known"
    read -r number name family address rest < <(ip -o -4 addr show dev "$rail")
    [ -n "$address" ] || fail "interface $rail on $node has no IPv4 address"
    mine=${address%%/*}
}

own_port() { # of an HCA; the address is only where the two programs meet
    local port=$sys/class/infiniband/${rail%%:*}/ports/${rail##*:} state rest
    [ -d "$port" ] || fail "no port $rail on $node, which has $(ls "$sys/class/infiniband" 2>/dev/null | tr '\n' ' ')"
    read -r state <"$port/state"
    [[ $state == *ACTIVE* ]] || fail "port $rail on $node is ${state#*: }"
    read -r _ _ _ mine rest < <(ip -o -4 addr show scope global)
    mine=${mine%%/*}
    [ -n "$mine" ] || fail "$node has no IPv4 address at which $tool could be met"
}

state_of() { # PORT: whether somebody on this node listens there
    local line hex
    printf -v hex ':%04X' "$1"
    while read -r _ local _ state _; do
        [[ $state == 0A && $local == *"$hex" ]] && return 0
    done < <(cat /proc/net/tcp /proc/net/tcp6 2>/dev/null)
    return 1
}

serve() {
    local port=$((20000 + ($$ + RANDOM) % 10000)) tries
    while state_of "$port"; do port=$((20000 + RANDOM % 10000)); done
    case $tool in
    iperf3) set -- iperf3 -s -1 -B "$mine" -p "$port" ;;
    iperf) set -- iperf -s -B "$mine" -p "$port" ;;
    *) set -- "$tool" -d "${rail%%:*}" -i "${rail##*:}" -F -p "$port" "$@" ;;
    esac
    timeout -k 1 "$((limit + patience))" "$@" >"$FABRICPROOF_LEG/server.$part" 2>&1 </dev/null &
    server=$!
    trap 'kill "$server" 2>/dev/null; wait "$server" 2>/dev/null' EXIT # gone before its rank is
    trap 'exit 143' TERM INT
    for ((tries = 0; tries < 100; tries++)); do
        state_of "$port" && break
        kill -0 "$server" 2>/dev/null || break
        sleep 0.1
    done
    state_of "$port" || fail "the $tool server on $node $rail never listened: $(last_words "$FABRICPROOF_LEG/server.$part")"
    announce "ready $node $mine $port"
    # The client says when it is done; a server for one client ends by itself.
    for ((tries = 0; tries < 10 * (limit + patience); tries++)); do
        [ -e "$mark.done" ] && break
        sleep 0.1
    done
    exit 0
}

measure() {
    local tries word="" there address port rest status server_name
    for ((tries = 0; tries < 10 * patience; tries++)); do
        # Listing the folder makes a network file system look again.
        ls "$FABRICPROOF_LEG" >/dev/null
        [ -r "$mark" ] && read -r word there address port rest <"$mark" && break
        sleep 0.1
    done
    if [ "$word" = failed ]; then
        read -r _ rest <"$mark"
        fail "$rest"
    fi
    if [ "$word" != ready ]; then
        read -r there <"$mark.node" 2>/dev/null || there="the other node"
        fail "the $tool server on $there $rail did not answer within $patience s: it never said that it is ready"
    fi
    [ -z "${FABRICPROOF_FRAME:-}" ] || try_frames "$address"
    case $tool in
    iperf3) set -- iperf3 -c "$address" -B "$mine" -p "$port" -J "$@" ;;
    iperf) set -- iperf -c "$address" -B "$mine" -p "$port" "$@" ;;
    *)
        server_name=$address
        getent hosts "$there" >/dev/null && server_name=$there
        set -- "$tool" -d "${rail%%:*}" -i "${rail##*:}" -F -p "$port" "$@" "$server_name"
        ;;
    esac
    timeout -k 1 "$limit" "$@" >"$FABRICPROOF_LEG/client.$part" 2>"$FABRICPROOF_LEG/client.$part.err" </dev/null
    status=$?
    : >"$mark.done"
    cat "$FABRICPROOF_LEG/client.$part"
    cat "$FABRICPROOF_LEG/client.$part.err" >&2
    case $status in
    0) exit 0 ;;
    124 | 137) fail "the $tool server on $there $rail ($address) did not answer within $limit s from $node $rail ($mine)" ;;
    esac
    rest=$(last_words "$FABRICPROOF_LEG/client.$part")
    fail "$tool from $node to $there over $rail ended with status $status: ${rest:-$(last_words "$FABRICPROOF_LEG/client.$part.err")}"
}

[ "$rank" = 0 ] || echo "$node" >"$mark.node"
type -P "$tool" >/dev/null || fail "no $tool on node $node"
type -P timeout >/dev/null || fail "no timeout (coreutils) on node $node"
case $tool in
ib_*) own_port ;;
*) own_address ;;
esac
if [ "$rank" = 0 ]; then measure "$@"; else serve "$@"; fi
