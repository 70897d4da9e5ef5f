"""Composite indexes, as the server asks for them: the missing one is recommended in an error, in
the form of index.yaml, and is made through the administration's API."""

import re
import time

import grpc

HEADLINE = "no matching index found."
BUILD_SECONDS = 30


def is_missing(answer):
    return answer.get("error") == "FAILED_PRECONDITION" and HEADLINE in answer["words"]


class Indexes:
    """Of one session of the server."""

    def __init__(self, session):
        self.session = session

    def answer(self, operation, missing):
        return missing
