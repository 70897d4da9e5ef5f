"""Composite indexes, as the server asks for them: the missing one is recommended in an error, in
the form of index.yaml, and is made through the administration's API."""

from google.api_core import exceptions, retry
from harness import indexes

HEADLINE = "no matching index found."
MOST = 12  # of one query: its disjunctions may have one each
POLLING = retry.Retry(
    predicate=retry.if_exception_type(Exception), initial=0.01, maximum=0.2, timeout=60
)


def is_missing(answer):
    return answer.get("error") == "FAILED_PRECONDITION" and HEADLINE in answer["words"]


class Indexes:
    """Of one session of the server."""

    def __init__(self, session):
        self.session = session
        self.harness = indexes.Indexes(session.side.host, session.project)

    def close(self):
        self.harness.close()

    def answer(self, operation, missing):
        """What the server says once it has the indexes; `missing` if none can be had."""
        for _ in range(MOST):
            try:
                index = indexes.recommended(missing["words"])
                self.harness.begin(index).result(polling=POLLING)
            except exceptions.GoogleAPICallError:
                return missing
            answer = self.session.answer(operation)
            if not is_missing(answer):
                return answer
            missing = answer
        return missing
