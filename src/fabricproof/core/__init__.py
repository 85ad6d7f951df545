"""What every room needs: errors and exit statuses, units, measurements, records, which build."""

#: What other rooms may import beside this package itself.
FRONT: dict[str, str] = {
    "errors": "errors with what, expected, got and next step; exit statuses",
    "findings": "what was found and where: one shape for every room, and its form in records",
    "group": "commands of which all ends at Ctrl-C and at a time limit",
    "hostlist": "node names as Slurm folds them, lists of CPUs",
    "measure": "verdict words, quantities, tables",
    "plain": "our own dataclasses as plain data, the form of --json, and back again",
    "project": "which folder is the project, and what an installed package brings",
    "provenance": "which build a number was measured with, and of which leg",
    "records": "records as lines of JSON: appended, read, damaged ones told",
    "student": "Student's t: tail and quantile",
    "units": "units, message sizes, names of a quantity, percent, columns, order, groups, times",
    "whole_file": "files written whole or not at all",
}
