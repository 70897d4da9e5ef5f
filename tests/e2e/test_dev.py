"""What ./dev does before it builds: a copy of a built tree has a build directory with the paths of
the other one. (The package of such a copy was made by hand, and takes minutes.)"""

import json
import subprocess

import pytest
from harness.server import ROOT


@pytest.mark.parametrize(
    ("source", "is_another"), [("/another/tree", True), ("", False), (None, False)]
)
def test_a_copied_tree_is_known(tmp_path, source, is_another):
    """`source` is where meson was run; "": here; None: it was not."""
    script = (ROOT / "dev").read_text()
    body = script[script.index("is_of_another_tree() {") :]
    function = body[: body.index("\n}\n") + 3]
    if source is not None:
        info = tmp_path / "build/meson-info/meson-info.json"
        info.parent.mkdir(parents=True)
        directories = {"source": source or str(tmp_path), "build": f"{source}/build"}
        info.write_text(json.dumps({"directories": directories}))
    done = subprocess.run(["bash", "-c", f"{function}\nis_of_another_tree build"], cwd=tmp_path)
    assert (done.returncode == 0) == is_another
