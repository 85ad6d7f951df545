#!/bin/bash
# Started by the launcher once for every rank, around the benchmark:  rank.sh PROGRAM [ARG...]
# Reads every interface's counters before and after, and says where this rank runs and which MPI
# library the loader gives the program here.  Only bash's own commands and the loader's ldd, so that
# it costs a few milliseconds and needs nothing on the node.  What is the node's and not a rank's
# (TCP, errors of PCIe, counters of the hardware, ethtool) only its first rank reads.
# FABRICPROOF_LEG is this leg's folder, which all nodes share; FABRICPROOF_SYS is for tests.
# A fork costs 20 ms in an emulated guest: nothing here forks but ethtool and ldd, where they can
# say something.
shopt -s extglob
if [ ! -d "${FABRICPROOF_LEG:-}" ]; then
    echo "rank.sh: FABRICPROOF_LEG is no folder: '${FABRICPROOF_LEG:-}'" >&2
    exit 74
fi
sys=${FABRICPROOF_SYS:-/sys}
rank=${PMIX_RANK:-${PMI_RANK:-${OMPI_COMM_WORLD_RANK:-${SLURM_PROCID:-0}}}}
node=${SLURMD_NODENAME:-${HOSTNAME%%.*}}
refuse() { # REASON
    # On stderr the launcher has the last word; the first reason stands.
    (set -C && echo "$1" >"$FABRICPROOF_LEG/reason.${FABRICPROOF_PART:-0}") 2>/dev/null
    echo "rank.sh: $1" >&2
    exit 74
}
# Files that the MPI would silently do without: FABRICPROOF_FILES names them, with colons between.
IFS=: read -ra needed <<<"${FABRICPROOF_FILES:-}"
for file in "${needed[@]}"; do
    [ -r "$file" ] || refuse "$node cannot read $file, which this leg's MPI is told to"
done
# The program is in an image: "@inside@" is where inside.sh is to write, even if the runtime hands no
# variables on.  FABRICPROOF_OUTSIDE: this script is in it too, and that is the root of a node.
if [ -n "${FABRICPROOF_CONTAINER:-}" ]; then
    set -- "${@/#@inside@/"$FABRICPROOF_LEG/inside.$rank.${FABRICPROOF_PART:-0}"}"
    type -P -- "$1" >/dev/null || refuse "$node has no $1, which starts this stack's container: \
install it there, or correct runtime in the stack's [container]"
    [[ -n "${FABRICPROOF_OUTSIDE:-}" || $FABRICPROOF_CONTAINER != /* || -r $FABRICPROOF_CONTAINER ]] ||
        refuse "$node cannot read the image $FABRICPROOF_CONTAINER of this stack's container"
fi
out="$FABRICPROOF_LEG/rank.$rank.${FABRICPROOF_PART:-0}"
export FABRICPROOF_LOADED="$FABRICPROOF_LEG/loaded.$rank.${FABRICPROOF_PART:-0}"
# Below mpirun all ranks of a node inherit one SLURM_LOCALID; a rank that knows no number reads too.
first=${OMPI_COMM_WORLD_LOCAL_RANK:-${MPI_LOCALRANKID:-${SLURM_LOCALID:-0}}}

# Adds " key=value" of each file of a folder that is there and holds a number: KEYS are its names.
counters() { # FOLDER KEY...
    local folder=$1 key value
    shift
    for key in "$@"; do
        { read -r value <"$folder/$key"; } 2>/dev/null || continue
        value=${value%%@*} # Slingshot's telemetry has VALUE@TIME
        [[ $value == +([0-9]) ]] && line+=" ${key##*/}=$value"
    done
}

# Errors of the PCIe link of a device, in all: the last line of each file is TOTAL_ERR_COR 0.
aer() { # DEVICE
    local kind key value
    for kind in correctable nonfatal fatal; do
        [ -r "$1/aer_dev_$kind" ] || continue
        while read -r key value; do
            [[ $key == TOTAL_* && $value == +([0-9]) ]] && line+=" aer_$kind=$value"
        done <"$1/aer_dev_$kind"
    done
}

# Whether a driver has counts of its own that tell of a wire: virtio's are of its queues alone.
has_wire() { # INTERFACE's folder
    local line
    type -P ethtool >/dev/null || return
    while read -r line; do
        [ "$line" != DRIVER=virtio_net ] || return
    done 2>/dev/null <"$1/device/uevent"
    return 0
}

# Of the hundreds of lines of ethtool -S those that tell of errors, drops, pauses and limits.  A
# driver that does not answer within a second is left behind.
ethtool_says() { # INTERFACE
    local key value
    while IFS=: read -t 1 -r key value; do
        key=${key//[[:space:]]/} value=${value//[[:space:]]/}
        [[ $key == +([A-Za-z0-9_.-]) && $value == +([0-9]) ]] && line+=" ethtool.$key=$value"
    done < <(ethtool -S "$1" 2>/dev/null | grep -E \
        'crc.*err|symbol_err|discard|out_of_buffer|pause|pfc|xoff|ecn|allowance_exceeded|link_down_events')
}

# TCP and IP of this node: a line of names, then a line of numbers, each after its protocol's name.
tcp() {
    local lines index names numbers before key
    [ -r /proc/net/snmp ] && mapfile -t lines </proc/net/snmp
    [ -r /proc/net/netstat ] && mapfile -t -O "${#lines[@]}" lines </proc/net/netstat
    for ((index = 0; index + 1 < ${#lines[@]}; index += 2)); do
        case ${lines[index]} in
        Ip:*) set -- ForwDatagrams ;;
        Tcp:*) set -- OutSegs RetransSegs ;;
        TcpExt:*) set -- ListenDrops TCPSynRetrans TCPDSACKRecv TCPDSACKOfoRecv TCPDSACKRecvSegs \
            TCPOFOQueue ;;
        *) continue ;;
        esac
        names="${lines[index]} " numbers=(${lines[index + 1]})
        for key in "$@"; do
            [[ $names == *" $key "* ]] || continue
            before=(${names%%" $key "*})
            line+=" $key=${numbers[${#before[@]}]}"
        done
    done
}

# The addresses of this node, as its routing table has them.
addresses() {
    local mark word rest last="" found=""
    while read -r mark word rest; do
        [ "$mark" != "|--" ] || last=$word
        [ "$mark $word $rest" = "/32 host LOCAL" ] || continue
        [[ $last == 127.* || "$found " == *" $last "* ]] || found+=" $last"
    done 2>/dev/null </proc/net/fib_trie
    [ -z "$found" ] || echo "addresses$found"
}

# Whom this node takes for its neighbours on the rails (DEVICE/ADDRESS=FLAGS/HARDWARE), and the time
# to live of one packet of each node of this leg there: a node between takes one off.  Only ping
# forks, and the first peer that does not answer is the last.
neighbours() {
    local rail port device=" " ip type flags hardware mask name file key own line="" peers=" " live=""
    [ "$first" = 0 ] || return 0
    for rail in $FABRICPROOF_RAILS; do
        port=$sys/class/infiniband/${rail%%:*}/ports/${rail##*:}
        { read -r name <"$port/gid_attrs/ndevs/0" || read -r name <"$port/../../parent"; } \
            2>/dev/null && rail=$name
        device+="$rail "
    done
    set -- "$FABRICPROOF_LEG"/rank.*."${FABRICPROOF_PART:-0}"
    for file in "${@:1:16}"; do # of many ranks the entries alone
        while read -r key own; do
            [ "$key" != addresses ] || { peers+="$own " && break; }
        done 2>/dev/null <"$file"
    done
    while read -r ip type flags hardware mask name; do
        [[ $device == *" $name "* && $flags != 0x0 ]] || continue
        line+=" $name/$ip=$flags/$hardware"
        [[ $peers == *" $ip "* && $live != *" none" ]] || continue
        if [[ $(ping -n -c 1 -W 1 "$ip" 2>/dev/null) =~ ttl=([0-9]+) ]]; then
            live+=" $name/$ip=${BASH_REMATCH[1]}"
        else
            live+=" none"
        fi
    done 2>/dev/null </proc/net/arp
    [ -z "$line" ] || echo "neighbours$line"
    live=${live% none}
    [ -z "$live" ] || echo "ttl$live"
}

# A Soft-RoCE port: its counters/ (newer kernels) has bytes and packets, and errors that never move;
# what happened to it stands in hw_counters.
soft() {
    counters "$port/counters" port_xmit_data port_rcv_data port_xmit_packets port_rcv_packets
    [ -e "$port/counters/port_xmit_data" ] ||
        counters "$port/hw_counters" sent_bytes rcvd_bytes sent_pkts rcvd_pkts
    [ "$first" != 0 ] || counters "$port/hw_counters" link_downed retry_exceeded_err \
        retry_rnr_exceeded_err send_err completer_retry_err duplicate_request out_of_seq_request \
        rcvd_seq_err rcvd_rnr_err send_rnr_err
}

snapshot() { # before|after
    local folder port name line state
    for folder in "$sys"/class/net/*; do
        [ -d "$folder" ] || continue # bonding_masters is a file
        line="" state=""
        counters "$folder/statistics" tx_bytes rx_bytes tx_packets rx_packets tx_errors rx_errors \
            tx_dropped rx_dropped
        counters "$folder" carrier_changes
        if [ "$first" = 0 ] && [ -e "$folder/device" ]; then
            counters "$folder/statistics" rx_crc_errors rx_missed_errors
            aer "$folder/device"
            { read -r state <"$folder/operstate"; } 2>/dev/null
            [ "$state" = up ] && has_wire "$folder" && ethtool_says "${folder##*/}"
        fi
        echo "$1 ${folder##*/}$line"
    done
    for port in "$sys"/class/infiniband/*/ports/*; do
        [ -d "$port" ] || continue
        name=${port#"$sys"/class/infiniband/}
        line=""
        if [ -e "$port/../../parent" ]; then
            soft
            echo "$1 ${name%%/*}:${name##*/}$line"
            continue
        fi
        counters "$port/counters" port_xmit_data port_rcv_data port_xmit_packets port_rcv_packets \
            symbol_error link_error_recovery link_downed port_rcv_errors port_xmit_discards \
            local_link_integrity_errors excessive_buffer_overrun_errors VL15_dropped port_xmit_wait
        # EFA, bnxt_re and irdma have no other count of their bytes.
        [ -e "$port/counters/port_xmit_data" ] ||
            counters "$port/hw_counters" tx_bytes rx_bytes tx_pkts rx_pkts send_bytes recv_bytes \
                rdma_read_bytes rdma_read_resp_bytes rdma_write_bytes rdma_write_recv_bytes \
                ip4InOctets ip4OutOctets ip6InOctets ip6OutOctets \
                ip4InPkts ip4OutPkts ip6InPkts ip6OutPkts
        if [ "$first" = 0 ]; then
            counters "$port/hw_counters" np_cnp_sent rp_cnp_handled np_ecn_marked_roce_packets \
                out_of_sequence duplicate_request packet_seq_err local_ack_timeout_err \
                rnr_nak_retry_err roce_adp_retrans rx_icrc_encapsulated rx_drops retrans_pkts \
                to_retransmits seq_err_naks_rcvd rnr_naks_rcvd \
                RetransSegs tcpRetransSegs cnpSent cnpHandled RxECNMrkd
            aer "$port/../../device"
        fi
        echo "$1 ${name%%/*}:${name##*/}$line"
    done
    for folder in "$sys"/class/cxi/cxi*; do
        [ -d "$folder" ] || continue
        line=""
        counters "$folder/device/telemetry" hni_sts_tx_ok_octets hni_sts_rx_ok_octets \
            hni_pkts_sent_by_tc_0 hni_pkts_sent_by_tc_1 hni_pkts_sent_by_tc_2 hni_pkts_sent_by_tc_3 \
            hni_pkts_sent_by_tc_4 hni_pkts_sent_by_tc_5 hni_pkts_sent_by_tc_6 hni_pkts_sent_by_tc_7 \
            hni_pkts_recv_by_tc_0 hni_pkts_recv_by_tc_1 hni_pkts_recv_by_tc_2 hni_pkts_recv_by_tc_3 \
            hni_pkts_recv_by_tc_4 hni_pkts_recv_by_tc_5 hni_pkts_recv_by_tc_6 hni_pkts_recv_by_tc_7
        [ "$first" != 0 ] || counters "$folder/device/telemetry" pct_spt_timeouts
        echo "$1 ${folder##*/}$line"
    done
    if [ "$first" = 0 ]; then
        line=""
        tcp
        echo "$1 node/tcp$line"
    fi
}

# A hypervisor that takes the CPU away and does not say so (emulation, some clouds) leaves gaps in a
# loop that does nothing else: 40 ms of it, in pieces that are short beside a slice of a scheduler.
# What a piece took beyond half again the shortest is a gap; what this shell waited for within this
# machine is none.  Not on bare metal, and not where the kernel has ever counted stolen time.
lost_us=0 paced_us=0
pace() {
    local key stolen start now then waited=0 before=0 took shortest=0 gaps=0 index
    [ "$first" = 0 ] && [ -n "$hypervisor" ] && [ -n "${EPOCHREALTIME:-}" ] || return
    read -r key _ _ _ _ _ _ _ stolen _ </proc/stat
    [ "${stolen:-0}" = 0 ] && { read -r _ before _ </proc/self/schedstat; } 2>/dev/null || return
    start=${EPOCHREALTIME//[!0-9]/} then=$start now=$start
    while ((now < start + 40000)); do
        for ((index = 0; index < 10; index++)); do :; done
        now=${EPOCHREALTIME//[!0-9]/}
        ((took = now - then, then = now))
        ((shortest && shortest <= took)) || shortest=$took
        ((2 * took <= 3 * shortest)) || ((gaps += took - shortest))
    done
    { read -r _ waited _ </proc/self/schedstat; } 2>/dev/null
    ((gaps -= (waited - before) / 1000, gaps > 0)) && ((lost_us += gaps))
    ((paced_us += now - start))
}

# What the CPUs that this rank may run on did, and what this rank's processes that ended took of
# them, in ticks; how long anything waited for a CPU of this node, where the kernel keeps it.
cores() { # before|after
    local name user nice system idle iowait irq softirq steal rest text own
    local busy=0 rested=0 stolen=0 took=0 line="" process
    [ "$1" = after ] || pace
    while read -r name user nice system idle iowait irq softirq steal rest; do
        case $name in
        cpu) continue ;;
        cpu*) [[ $mine == *" ${name#cpu} "* ]] || continue ;;
        *) break ;;
        esac
        # Interrupts are nobody's: the network's own work is there.
        ((busy += user + nice + system, rested += idle + iowait, stolen += ${steal:-0}))
    done </proc/stat
    for process in self $program; do # one that still runs is nobody's ended child
        { read -r text <"/proc/$process/stat"; } 2>/dev/null || continue
        own=(${text##*) }) # from the state on: fields 14 to 17 are utime, stime, cutime, cstime
        ((took += own[11] + own[12] + own[13] + own[14]))
    done
    { read -r text </proc/pressure/cpu; } 2>/dev/null &&
        [[ $text =~ total=([0-9]+) ]] && line=" waited_us=${BASH_REMATCH[1]}"
    # bash 5 and later has this clock; without it there are no figures.
    [ -z "${EPOCHREALTIME:-}" ] || line+=" clock_us=${EPOCHREALTIME//[!0-9]/}"
    if [ "$1" = after ]; then
        pace
        ((paced_us == 0)) || line+=" lost_us=$lost_us paced_us=$paced_us" # both looks together
    fi
    echo "$1 node/cores busy_ticks=$busy idle_ticks=$rested steal_ticks=$stolen own_ticks=$took$line"
}

facts() {
    local folder port name value line key
    for folder in "$sys"/class/net/*; do
        [ -d "$folder" ] || continue # bonding_masters is a file
        line=""
        for key in mtu speed operstate address device/numa_node; do
            { read -r value <"$folder/$key"; } 2>/dev/null && line+=" ${key##*/}=$value"
        done
        echo "fact ${folder##*/}$line"
    done
    for port in "$sys"/class/infiniband/*/ports/*; do
        [ -d "$port" ] || continue
        name=${port#"$sys"/class/infiniband/}
        line=""
        if [ -e "$port/../../parent" ]; then # software over an interface: no adapter has it
            value=""
            { read -r value <"$port/../../parent"; } 2>/dev/null
            line+=" parent=${value// /_}"
        fi
        for key in state rate link_layer ../../fw_ver ../../device/numa_node \
            ../../device/uevent; do # its first line: DRIVER=hfi1
            { read -r value <"$port/$key"; } 2>/dev/null && line+=" ${key##*/}=${value// /_}"
        done
        echo "fact ${name%%/*}:${name##*/}$line"
    done
    for folder in "$sys"/class/cxi/cxi*; do
        [ -d "$folder" ] || continue
        line=""
        for name in "$folder"/device/net/*; do # its interface: what that moves, the device counts
            [ -d "$name" ] && line+=" netdev=${name##*/}" && break
        done
        echo "fact ${folder##*/}$line"
    done
}

# The library as this very job's variables make it: a module or a path that somebody changed shows.
# A line of ldd:  libmpi.so.40 => PATH (0x...), or, where it is preloaded,  PATH (0x...).
libraries() {
    local line found="" files=()
    [[ ${1##*/} != python* ]] || return # linked with no MPI: what it loads it says itself, see loaded
    type -P ldd >/dev/null || { echo "library unknown" && return; }
    [ "${1##*/}" != bash ] || { echo "library none" && return; }
    while read -r line; do
        case "${line%% (0x*}" in
        libmpi?(ch|_abi).so.* | */libmpi?(ch|_abi).so.*[0-9])
            line=${line#* => } found+="${found:+ and }${line%% (0x*}"
            files+=("${line%% (0x*}") ;;
        libuc[pts].so.* | libfabric.so.* | libopen-pal.so.*)
            line=${line#* => } files+=("${line%% (0x*}") ;;
        esac
    done < <(ldd "$(type -P -- "$1")" 2>/dev/null)
    echo "library ${found:-none}"
    digests "${files[@]}"
}

# What is in the files of the MPI library and of what carries its messages: NAME=SHA256...
digests() { # FILE...
    local line="" sum file
    [ "$first" = 0 ] && [ $# -gt 0 ] && type -P sha256sum >/dev/null || return 0
    while read -r sum file; do
        line+=" ${file##*/}=${sum#\\}"
    done < <(sha256sum -- "$@" 2>/dev/null)
    [ -z "$line" ] || echo "digests$line"
}

# What a Python program, such as portrunner.py, had in its memory: a line for each library.
loaded() { # PROGRAM
    local line found="" files=()
    [[ ${1##*/} == python* && -z ${FABRICPROOF_CONTAINER:-} ]] || return
    while read -r line; do
        found+="${found:+ and }$line" files+=("$line")
    done 2>/dev/null <"$FABRICPROOF_LOADED"
    echo "library ${found:-none}"
    digests "${files[@]}"
}

hypervisor=""
while read -r key line; do
    [[ $key == flags ]] || continue
    [[ "$line " != *" hypervisor "* ]] || hypervisor=yes
    break
done </proc/cpuinfo

cpus=unknown
while read -r key value; do
    [ "$key" = Cpus_allowed_list: ] && cpus=$value
done </proc/self/status
read -r kernel </proc/sys/kernel/osrelease
read -r machine </proc/sys/kernel/random/boot_id || machine=$node
mine=" "
IFS=, read -ra spans <<<"$cpus"
for span in "${spans[@]}"; do
    for ((cpu = ${span%-*}; cpu <= ${span#*-}; cpu++)); do mine+="$cpu "; done
done

{
    echo "rank $rank"
    echo "node $node"
    echo "cpus $cpus"
    echo "kernel $kernel"
    echo "machine $machine"
    addresses
    if [ -n "${FABRICPROOF_CONTAINER:-}" ]; then # inside.sh says the library
        echo "root ${FABRICPROOF_OUTSIDE:-$(stat -c %d:%i /)}"
    else
        libraries "${FABRICPROOF_PROGRAM:-$1}" # a script is no program
    fi
    facts
    snapshot before && cores before
} >"$out" || exit 74
"$@"
status=$?
{
    cores after
    snapshot after
    neighbours
    loaded "${FABRICPROOF_PROGRAM:-$1}"
    echo "status $status"
} >>"$out" || exit 74
if [ -n "$program" ]; then
    read -rt 2 -u 9 # a rank whose program is gone ends its job step: first all of them have written
    { kill -KILL "$program" && wait "$program"; } 2>/dev/null
fi
exit $status
