#!/bin/bash
# Against a Trestle server that wants TLS and a token: creates a table, writes a row, reads it.
#
#     ./secured.sh ENDPOINT CA.PEM TOKEN-FILE create write read
#
# With an empty ENDPOINT it goes where BIGTABLE_EMULATOR_HOST says, without either.
set -euo pipefail

endpoint=$1 authority=$2 token_file=$3
shift 3

with_credentials() {
    cbt -project p -instance i -admin-endpoint "$endpoint" -data-endpoint "$endpoint" \
        -cert-file "$authority" -access-token "$(<"$token_file")" "$@"
}

run_cbt() {
    if [ -n "$endpoint" ]; then
        with_credentials "$@"
    else
        cbt -project p -instance i "$@"
    fi
}

for step in "$@"; do
    case $step in
    create) run_cbt createtable greetings families=f ;;
    write) run_cbt set greetings hello f:text=world ;;
    read) run_cbt read greetings prefix=hello ;;
    esac
done
