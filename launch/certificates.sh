#!/usr/bin/env bash
# certificates.sh DIR: makes the certificates of a run whose replay server is reached by TLS, in the new folder DIR:
#
#   DIR/server/   ca.crt, own.crt, own.key: for the machine of the replay server
#   DIR/client/   the same for all other roles: the one folder that other machines need
#
# The authority signs these two and nothing ever again: its key is not kept. Keys can be read by the user of
# the containers alone, and so this needs to be run by root.
set -euo pipefail
umask 077

user=10001 # of launch/Dockerfile
days=365

fail() {
  echo "certificates.sh: $*" >&2
  exit 1
}

usage() {
  echo "usage: certificates.sh DIR" >&2
  exit 2
}

# sign NAME SIDE USAGE: a key and a certificate of that name, in the folder of that side.
sign() {
  local folder=$made/$2
  mkdir "$folder"
  cp "$work/ca.crt" "$folder/ca.crt"
  openssl req -config "$work/ca.cnf" -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=$1" \
    -keyout "$folder/own.key" -out "$work/$2.csr"
  printf '%s\n' "basicConstraints = critical,CA:FALSE" "keyUsage = critical,digitalSignature" \
    "extendedKeyUsage = $3" "subjectAltName = DNS:$1" >"$work/$2.ext"
  openssl x509 -req -in "$work/$2.csr" -CA "$work/ca.crt" -CAkey "$work/ca.key" -days "$days" \
    -extfile "$work/$2.ext" -out "$folder/own.crt"
  chmod 400 "$folder"/*
  chown -R "$user:$user" "$folder"
}

make_all() {
  printf '%s\n' "[req]" "distinguished_name = name" "x509_extensions = authority" "[name]" "[authority]" \
    "basicConstraints = critical,CA:TRUE,pathlen:0" "keyUsage = critical,keyCertSign" \
    "subjectKeyIdentifier = hash" >"$work/ca.cnf"
  openssl req -config "$work/ca.cnf" -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days "$days" \
    -subj "/CN=actorlearner" -keyout "$work/ca.key" -out "$work/ca.crt"
  sign replay-server server serverAuth
  sign client client clientAuth
}

[[ $# == 1 && -n $1 && $1 != -* ]] || usage
folder=$1
[[ $(id -u) == 0 ]] || fail "has to be run by root: the keys are for user $user of the containers alone"
command -v openssl >/dev/null || fail "there is no openssl"
[[ ! -e $folder && ! -L $folder ]] || fail "$folder is there already; it is left as it is"
parent=$(dirname -- "$folder")
[[ -d $parent ]] || fail "$parent is no folder"

# Beside the folder, so that it is there as a whole or not at all.
work=$(mktemp -d -- "$parent/.certificates-XXXXXX")
trap 'rm -rf -- "$work"' EXIT
made=$work/made
mkdir -m 755 "$made"
make_all 2>"$work/log" || {
  cat "$work/log" >&2
  fail "openssl failed"
}
mv -T -- "$made" "$folder" # Which takes the place of no file and of no folder with files.
until=$(openssl x509 -in "$folder/server/own.crt" -noout -enddate)
echo "certificates.sh: made $folder/server and $folder/client, good until $(date -u -d "${until#notAfter=}" +%F)"
