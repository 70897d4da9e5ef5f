"""Runs a class of JUnit tests by java/Run.java, and reads what that prints."""

import re

from fetching import clean_environment, run
from outcomes import FAILED, Outcome

RUN = "com.google.cloud.bigtable.test_helpers.env.Run"
LINE = re.compile(r"^#(passed|failed|skipped)\t(\S+)\t(.*)$")


def run_class(name, classpath, properties, seconds):
    """The outcomes of a class; one more if it did not come to its end."""
    told = [f"-D{key}={value}" for key, value in properties.items()]
    code, output = run(
        ["java", *told, "-cp", classpath, RUN, name], seconds, clean_environment()
    )
    found = [Outcome(each[2], each[1], each[3].replace("\\n", "\n"))
             for each in map(LINE.match, output.splitlines()) if each]  # fmt: skip
    if code == 124 or not found:
        found.append(Outcome(f"{name.rsplit('.', 1)[-1]} (whole)", FAILED, output))
    return found
