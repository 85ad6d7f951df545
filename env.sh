# Source this:  . env.sh [SITE]
# Puts fabricproof and its reframe on PATH, its manual page on MANPATH; SITE (or $FABRICPROOF_SITE) chooses the site.
if [ -n "${BASH_SOURCE:-}" ]; then
    _fabricproof_root=$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")
elif [ -n "${FABRICPROOF_ROOT:-}" ]; then
    _fabricproof_root=$FABRICPROOF_ROOT # a plain sh cannot tell where this file lies
else
    _fabricproof_root=$PWD
fi
if [ ! -x "$_fabricproof_root/.venv/bin/fabricproof" ]; then
    echo "env.sh: $_fabricproof_root is not installed yet; next: make install there, or fabricproof init" >&2
else
    export FABRICPROOF_ROOT="$_fabricproof_root"
    case ":$PATH:" in
        *":$_fabricproof_root/bin:"*) ;;
        *)
            export PATH="$_fabricproof_root/bin:$PATH"
            # An empty end stands for the system's own manual pages.
            export MANPATH="$_fabricproof_root/.venv/share/man:${MANPATH:-}"
            ;;
    esac
    if [ -n "${1:-}" ]; then
        export FABRICPROOF_SITE="$1"
    elif [ -z "${FABRICPROOF_SITE:-}" ] && [ -d /run/fabricproof/vcluster/vcluster ]; then
        # The virtual cluster is up on this machine, and says of which kind it is.
        case $(cat /run/fabricproof/vcluster/vcluster/kind 2>/dev/null) in
            rdma) export FABRICPROOF_SITE=vcluster-rdma ;;
            *) export FABRICPROOF_SITE=vcluster ;;
        esac
    fi
fi
unset _fabricproof_root
