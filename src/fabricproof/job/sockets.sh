# What ask.sh and bind.sh both need to know of a node's sockets; read by them, not started.
sys=${FABRICPROOF_SYS:-/sys}

each_cpu() { # LIST: one CPU a line
    local part first last
    local IFS=,
    for part in $1; do
        first=${part%-*} last=${part#*-}
        while [ "$first" -le "$last" ]; do
            echo "$first"
            first=$((first + 1))
        done
    done
}

home_of() { # RAIL: sets home to the NUMA node of its slot; empty where nothing says it
    home=""
    { read -r home <"$sys/class/net/$1/device/numa_node" ||
        read -r home <"$sys/class/infiniband/${1%%:*}/device/numa_node"; } 2>/dev/null
}
