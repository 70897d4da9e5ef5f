"""What the four recipes have in common: a client, transactions that are tried again, hashes."""

import argparse
import hashlib
import random
import time

from google.api_core.exceptions import Aborted
from google.cloud import datastore

TRIES = 40


def parser(description):
    """A parser of the command line with what all programs take."""
    made = argparse.ArgumentParser(description=description.splitlines()[0])
    made.add_argument("--project", default="p", help="any name will do")
    return made


def client_of(options):
    """DATASTORE_EMULATOR_HOST says where the server is."""
    return datastore.Client(project=options.project)


def transact(client, work):
    """Runs work() in a transaction, again from its reads on if others came in between, and returns
    what it returns. ABORTED says that nothing was done. After other errors that is not known, so
    that they are the caller's."""
    for attempt in range(TRIES):
        try:
            with client.transaction():
                return work()
        except Aborted:
            if attempt + 1 == TRIES:
                raise
            time.sleep(random.uniform(0, min(0.01 * 2**attempt, 1)))


def hash_of(text, buckets):
    """A number below `buckets` that is the same for the same text, on every machine."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") % buckets
