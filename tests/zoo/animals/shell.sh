#!/bin/sh
# Prepares, trains twice and reports, as a cluster job does.
set -e
mkdir -p out
export RUN_NAME="a b"
echo "job $RUN_NAME"
python plain_loop.py > out/first.txt
cat out/first.txt | tail -1
cd out && PYTHONPATH=.. python ../grad_scaler.py | tail -1
echo done >&2
exit 7
