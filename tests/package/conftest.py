"""The package is made once for the tests of this folder."""

import shutil

import pytest
from harness.package import build
from harness.release import release_binary  # noqa: F401


@pytest.fixture(scope="session")
def package(release_binary, tmp_path_factory):  # noqa: F811
    if shutil.which("dh") is None:
        pytest.skip("debhelper is not installed")
    return build(release_binary, tmp_path_factory.mktemp("package"))
