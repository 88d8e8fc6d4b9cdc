#!/bin/sh
# Makes the secrets of docker-compose.yml: passwords, certificates, and a key for the API. Needs openssl. Safe to
# repeat: what exists is kept. To make everything again, remove the directory first, with the volumes of compose.
#
#   sh deploy/setup.sh [DIRECTORY]      by default deploy/secrets
#
# Each service of compose gets only its own subdirectory. Files in it are readable, because the users of the
# containers differ; the directory itself is closed for other users of this machine.
set -eu
umask 022

dir=${1:-$(dirname "$0")/secrets}
[ ! -e "$dir/api-key" ] || { echo "$dir is complete"; exit 0; }
mkdir -p "$dir/authority" "$dir/api" "$dir/worker" "$dir/nats" "$dir/temporal" "$dir/temporal-setup"
chmod 700 "$dir"

# NATS would read a password of digits as a number: the letter makes it text.
password() { echo "p$(openssl rand -hex 24)"; }

# authority NAME: a certificate authority.
authority() {
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 3650 -subj "/CN=$1" \
    -keyout "$dir/authority/$1.key" -out "$dir/authority/$1.pem" 2>/dev/null
  chmod 600 "$dir/authority/$1.key"
}

# issue AUTHORITY SERVICE PREFIX NAME…: the certificate of a service, with its names, and that of the authority.
issue() {
  by=$1 service=$2 prefix=$3 names=IP:127.0.0.1,DNS:localhost
  shift 3
  for name in "$@"; do names=$names,DNS:$name; done
  out=$dir/$service/$prefix
  printf 'subjectAltName=%s\nextendedKeyUsage=serverAuth,clientAuth\n' "$names" > "$dir/extensions"
  openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=$service" -keyout "${out}key.pem" -out "$dir/request" 2>/dev/null
  openssl x509 -req -in "$dir/request" -days 825 -CA "$dir/authority/$by.pem" -CAkey "$dir/authority/$by.key" -CAcreateserial \
    -extfile "$dir/extensions" -out "${out}cert.pem" 2>/dev/null
  cp "$dir/authority/$by.pem" "${out}ca.pem"
  chmod 644 "${out}key.pem"
  rm "$dir/request" "$dir/extensions"
}

# Two authorities: with the certificate of a client, a process must not become a node of NATS.
authority services
authority nats-nodes
issue services api ""
issue services worker ""
issue services temporal "" temporal
issue services temporal-setup ""
issue services nats "" nats-1 nats-2 nats-3
issue nats-nodes nats "node-" nats-1 nats-2 nats-3

for role in api worker admin; do password > "$dir/nats-$role"; done
cp "$dir/nats-api" "$dir/api/nats-password"
cp "$dir/nats-worker" "$dir/worker/nats-password"
{
  echo "NATS_ADMIN_PASSWORD=$(cat "$dir/nats-admin")"
  echo "NATS_API_PASSWORD=$(cat "$dir/nats-api")"
  echo "NATS_WORKER_PASSWORD=$(cat "$dir/nats-worker")"
} > "$dir/nats.env"

postgres=$(password)
echo "POSTGRES_PASSWORD=$postgres" > "$dir/postgres.env"
echo "POSTGRES_PWD=$postgres" > "$dir/temporal.env"
echo "SQL_PASSWORD=$postgres" > "$dir/temporal-schema.env"

key=$(openssl rand -hex 32)
cat > "$dir/api/keys.yaml" <<END
keys:
  - sha256: $(printf %s "$key" | openssl dgst -sha256 -r | cut -d ' ' -f 1)
    subject: admin
    roles: [perdure-platform-admin]
END
(umask 077 && echo "$key" > "$dir/api-key")
echo "$dir is complete. The key for the API is in $dir/api-key"
