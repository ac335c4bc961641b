#!/bin/sh
# Runs the test programs of one build folder: run.sh FOLDER. RUN is put before each command; THREADS is passed to hammer.
set -eu
folder=$1
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
for test in hammer edges fork close limit ring; do
    ${RUN:-} "$folder/torture" $test "$out/$test.ggtrace" ${THREADS:-}
    echo "ok $folder $test ${RUN:-}"
done
${RUN:-} "$folder/write_all" "$out/all.ggtrace"
echo "ok $folder write_all ${RUN:-}"
[ -n "${RUN:-}" ] || "$folder/clock" # not when slowed down: its clocks would seem far apart
echo "ok $folder clock"
${RUN:-} "$folder/counters" "$out/counters.ggtrace"
echo "ok $folder counters ${RUN:-}"
# Its signal timer starves under valgrind; the sanitizers test the same code.
if [ -z "${RUN:-}" ]; then "$folder/nvtx" "$out/nvtx.ggtrace"; fi
echo "ok $folder nvtx"
