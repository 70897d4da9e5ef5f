"""Over HTTP a GQL query with a mistake in it was refused without a word.

Found by tests/clients/datastore/java. The words of a syntax error end with blanks. A call's words
are a header, and blanks at the end of one are no part of it: nghttp2, through which our REST asks
our gRPC, takes a header with them for none at all. A blank at either end goes as %20 now."""

import pytest
from google.api_core import exceptions
from harness.datastore import Raw, client_of, fresh_client


@pytest.mark.parametrize("speaks_grpc", [True, False])
def test_the_words_come_through(server, speaks_grpc):
    client = client_of(server.host, fresh_client(server.host).project, _use_grpc=speaks_grpc)
    with pytest.raises(exceptions.BadRequest) as error:
        Raw(client).gql("SELEC * FROM K")
    assert error.value.message.startswith('Encountered "SELEC" at line 1, column 1.\n')
    assert error.value.message.endswith("\n    ")
