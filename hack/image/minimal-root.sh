#!/bin/sh
# Copies what Node.js needs of Debian into a folder: shared libraries, certificates of authorities, tini and two users. In a
# build (Dockerfile), with Node.js at its place.
#
#   minimal-root.sh /minimal
set -eu
root=$1

# The libraries of node; the paths are those of the loader, without the links of Debian on the way.
libraries=$(ldd /usr/local/bin/node | grep -o '/[^ ]*')
for file in $libraries /etc/ssl/certs/ca-certificates.crt; do
  mkdir -p "$root${file%/*}"
  cp --dereference --preserve=mode,timestamps "$file" "$root$file"
done
mkdir -p "$root/usr/bin" "$root/app"
cp --preserve=mode,timestamps /usr/bin/tini-static "$root/usr/bin/tini"
install -d -m 1777 "$root/tmp"

echo 'hosts: files dns' >"$root/etc/nsswitch.conf"
cat >"$root/etc/passwd" <<'USERS'
root:x:0:0:root:/:/sbin/nologin
boxwright:x:65532:65532:boxwright:/:/sbin/nologin
USERS
printf 'root:x:0:\nboxwright:x:65532:\n' >"$root/etc/group"

# Scanners and people see from which packages the files are, and under which licences.
mkdir -p "$root/var/lib/dpkg/status.d"
{
  echo ca-certificates: # its file is made when it is installed
  for file in $libraries /usr/bin/tini-static; do
    real=$(readlink --canonicalize "$file")
    # A package may know the file by the path before Debian joined /lib and /usr/lib.
    dpkg-query --search "$real" 2>/dev/null || dpkg-query --search "${real#/usr}"
  done
} | sed 's/[:,].*//' | sort -u | while read -r package; do
  dpkg-query --status "$package" >"$root/var/lib/dpkg/status.d/$package"
  mkdir -p "$root/usr/share/doc/$package"
  cp --dereference "/usr/share/doc/$package/copyright" "$root/usr/share/doc/$package/"
done
