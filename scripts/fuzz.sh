#!/usr/bin/env bash
# Runs the fuzz targets one after the other: scripts/fuzz.sh SECONDS [TARGET…], or only builds them: scripts/fuzz.sh build
#
# SECONDS is the time of each target; the build is extra. SEED fixes the mutations; without it each run has its own.
# cargo-fuzz is installed into target/cargo-fuzz at the version below. RUSTC_BOOTSTRAP lets the stable compiler take the
# option of the address sanitizer, so no nightly is needed. The targets of Python code run in .venv. A failing input is
# kept in out/fuzz/TARGET.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

CARGO_FUZZ=0.13.2
IN_RUST=(json_tape readers sessions repair summary_checks lines tokenizers)
IN_PYTHON=(event_streams torn_tails compressed)

seconds=${1:?usage: scripts/fuzz.sh SECONDS [TARGET…], scripts/fuzz.sh build}
shift
targets=("$@")
[ ${#targets[@]} -gt 0 ] || targets=("${IN_RUST[@]}" "${IN_PYTHON[@]}")

tool="$PWD/target/cargo-fuzz"
if [ "$("$tool/bin/cargo-fuzz" --version 2>/dev/null)" != "cargo-fuzz $CARGO_FUZZ" ]; then
    cargo install --quiet --locked --root "$tool" --version "$CARGO_FUZZ" cargo-fuzz
fi

export RUSTC_BOOTSTRAP=1
unset PYO3_PYTHON PYO3_CONFIG_FILE PYO3_BUILD_EXTENSION_MODULE
fuzz() { "$tool/bin/cargo-fuzz" "$1" --fuzz-dir fuzz --target-dir target/fuzz --release --debug-assertions "${@:2}"; }

is_in() { # WORD LIST…
    local word=$1 each
    shift
    for each in "$@"; do [ "$each" != "$word" ] || return 0; done
    return 1
}

began=$SECONDS
for target in "${targets[@]}"; do
    if is_in "$target" "${IN_RUST[@]}"; then
        fuzz build
        break
    fi
done
echo "built in $((SECONDS - began)) s"
[ "$seconds" != build ] || exit 0

for target in "${targets[@]}"; do
    found="out/fuzz/$target"
    mkdir -p "$found/corpus"
    printf '\n== %s, %s s\n' "$target" "$seconds"
    if is_in "$target" "${IN_RUST[@]}"; then
        # Inputs that reach something new go to the first folder; the committed ones stay as they are.
        fuzz run "$target" "$found/corpus" "fuzz/corpus/$target" -- -seed="${SEED:-0}" -max_total_time="$seconds" -dict=fuzz/json.dict \
            -max_len=8192 -timeout=10 -rss_limit_mb=1024 -print_final_stats=1 -verbosity=0 -close_fd_mask=1 \
            -artifact_prefix="$found/" 2>&1 | tee "$found/log" | grep -E 'stat::number|stat::new_units|ERROR|panicked|Test unit' \
            || { grep -q 'stat::number' "$found/log" || tail -n 30 "$found/log"; }
        ! ls "$found" | grep -qE '^(crash|timeout|oom|leak)-' || { echo "findings in $found" >&2; exit 1; }
    else
        .venv/bin/python fuzz/python_readers.py "$target" --seconds "$seconds" ${SEED:+--seed "$SEED"} --keep "$found"
    fi
done
