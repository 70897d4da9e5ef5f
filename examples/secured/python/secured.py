"""Against a Trestle server that wants TLS and a token: creates a table, writes a row, reads it.

python secured.py ENDPOINT CA.PEM TOKEN-FILE create write read
"""

import os
import sys
from pathlib import Path

from google.api_core.client_options import ClientOptions
from google.cloud.bigtable.data import BigtableDataClient, SetCell
from google.cloud.bigtable_admin_v2 import BigtableTableAdminClient
from google.oauth2.credentials import Credentials


def connection(endpoint, authority, token_file):
    """What each of Google's clients is told. gRPC takes roots from the environment alone, and
    without the second variable the data client sends its metrics to the endpoint, too."""
    os.environ["GRPC_DEFAULT_SSL_ROOTS_FILE_PATH"] = authority
    os.environ["OTEL_SDK_DISABLED"] = "true"
    return {
        "client_options": ClientOptions(api_endpoint=endpoint),
        "credentials": Credentials(token=Path(token_file).read_text().strip()),
    }


def create(options):
    with BigtableTableAdminClient(**options) as admin:
        admin.create_table(
            parent="projects/p/instances/i",
            table_id="greetings",
            table={"column_families": {"f": {}}},
        )


def write(options):
    with BigtableDataClient(project="p", **options) as client:
        client.get_table("i", "greetings").mutate_row("hello", SetCell("f", "text", "world"))


def read(options):
    with BigtableDataClient(project="p", **options) as client:
        row = client.get_table("i", "greetings").read_row("hello")
        print("hello", row.get_cells("f", "text")[0].value.decode())


if __name__ == "__main__":
    options = connection(*sys.argv[1:4])
    for step in sys.argv[4:]:
        {"create": create, "write": write, "read": read}[step](options)
