#!/bin/bash
# Builds ./kernel of kernel.c on the node where it is run, by the stack's own compiler; leaves none
# where that does not work.  kernel.built says what it is, for the record:  KIND SHA256
#   abi     against the standard MPI ABI (MPI 5.0), so that all stacks that have it run one binary
#   own     against the stack's own library: it has no such ABI
#   broken  the same, as its ABI does not work here; build.log says why
# A wrapper writes its folders into what it links, and a linker what it saw in a library.  So the
# wrapper compiles, its link proves that nothing is lacking, and what runs is linked against a library
# of the same name that does nothing: the loader finds the stack's where the environment leads to it.

loaded() { # PROGRAM: the MPI library that the loader gives it, where links lead to
    local path
    path=$(ldd "$1" | awk '$1 ~ /^libmpi(ch|_abi)?[.]so/ && $3 ~ /^[/]/ { print $3; exit }')
    [ -z "$path" ] || realpath "$path"
}

standard_abi() { # WRAPPER [OPTION]
    local mine theirs
    "$@" -O2 -DSTANDARD_ABI -c -o kernel.o kernel.c && "$@" -o kernel.abi kernel.o &&
        nm -u kernel.o | awk '$2 ~ /^MPI_/ { print "void " $2 "(void) {}" }' |
        cc -shared -nostdlib -Wl,-soname,libmpi_abi.so.1 -o libmpi_abi.so -x c - &&
        cc -o kernel.abi kernel.o libmpi_abi.so || return
    mine=$(loaded kernel) theirs=$(loaded kernel.abi)
    # Not those of two MPIs, and found without a path in the binary.
    [[ $theirs == */libmpi_abi.so.* && ${theirs%/*} == "${mine%/*}" ]] ||
        { echo "${theirs:-no libmpi_abi.so.1} would be loaded, the stack's is ${mine:-unknown}" && return 1; }
}

type -P mpicc && mpicc -O2 -o kernel kernel.c || { rm -f kernel kernel.built && exit; }
kind=own wrapper=()
if type -P mpicc_abi; then
    wrapper=(mpicc_abi)
elif [[ "$(mpicc -mpi-abi -show kernel.c)" == *-lmpi_abi* ]]; then
    wrapper=(mpicc -mpi-abi) # Intel MPI
fi
if [ "${#wrapper[@]}" != 0 ]; then
    kind=broken
    standard_abi "${wrapper[@]}" && mv kernel.abi kernel && kind=abi
fi
rm -f kernel.abi kernel.o libmpi_abi.so
digest=$(sha256sum kernel) || digest=""
echo "$kind ${digest%% *}" >kernel.built
