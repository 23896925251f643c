#!/usr/bin/env bash
# Tests the wheel as installed by a user: clean environment, empty folder, without the repository. PYTHON has the modules uv, which
# installs in a tenth of the time of pip, and build. Usage: .ci/wheel.sh WHEEL SDIST PYTHON
set -euo pipefail
wheel=$(realpath "$1") sdist=$(realpath "$2") python=$(realpath -s "$3")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
unset PYTHONPATH PYTHONHOME

"$python" -m uv venv --quiet --python "$python" "$folder/venv"
"$python" -m uv pip install --quiet --python "$folder/venv/bin/python" "$wheel"
mkdir "$folder/empty" && cd "$folder/empty"
case $("$folder/venv/bin/python" -c 'import irload; print(irload.__file__)') in
"$folder"/*) ;;
*) echo "irload was not imported from the wheel" >&2; exit 1 ;;
esac
"$folder/venv/bin/irrun" --version
# The only files are the model and its image, from the source distribution.
tar -xzf "$sdist" --strip-components=3 --wildcards '*/models/digits/model.*' '*/models/digits/digit_7_0.npy' '*/models/digits/labels.txt'
"$folder/venv/bin/irrun" model.xml digit_7_0.npy --top 1 --labels labels.txt | tee out.txt
grep -q seven out.txt
"$folder/venv/bin/irrun" check model.xml
"$folder/venv/bin/irrun" --help > help.txt && grep -q 'Commands' help.txt
"$folder/venv/bin/python" -c 'import irload; irload.compile_model("model.xml", strict=True)'
# The source distribution builds the same wheel.
mkdir "$folder/source" && tar -xzf "$sdist" --strip-components=1 -C "$folder/source"
"$python" -m build --no-isolation --wheel --outdir "$folder/again" "$folder/source" >/dev/null
names='import sys, zipfile; print(*sorted(zipfile.ZipFile(sys.argv[1]).namelist()), sep="\n")'
python=$folder/venv/bin/python
[ -n "$("$python" -c "$names" "$wheel")" ]
cmp <("$python" -c "$names" "$wheel") <("$python" -c "$names" "$folder"/again/*.whl)
echo "the wheel works in an empty folder"
