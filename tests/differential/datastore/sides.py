"""The sides of a comparison: servers that speak the API, asked by its RPCs without any library."""

import copy
import json
import time

import grpc
from google.cloud.datastore_v1 import types
from google.protobuf import json_format
from harness.patience import PATIENCE_SECONDS

from differential.datastore.normal import Normaliser, base64_of
from differential.datastore.operations import key_of

SERVICE = "/google.datastore.v1.Datastore/"
RPCS = ["Lookup", "RunQuery", "RunAggregationQuery", "BeginTransaction", "Commit", "Rollback",
        "AllocateIds", "ReserveIds"]  # fmt: skip
OLD_VERSION = "1"


class Side:
    """A server. Threads and processes have one each."""

    def __init__(self, name, host):
        self.name = name
        self.requests = {rpc: getattr(types, f"{rpc}Request").pb() for rpc in RPCS}
        self.dial(host)

    def dial(self, host):
        """Anew, if it has moved."""
        self.host = host
        self.channel = grpc.insecure_channel(host)
        self.calls = {rpc: self.call(rpc) for rpc in RPCS}

    def call(self, rpc):
        return self.channel.unary_unary(
            SERVICE + rpc,
            request_serializer=self.requests[rpc].SerializeToString,
            response_deserializer=getattr(types, f"{rpc}Response").pb().FromString,
        )

    def send(self, rpc, project, request):
        message = self.requests[rpc]()
        json_format.ParseDict({**request, "projectId": project}, message)
        return self.calls[rpc](message, timeout=PATIENCE_SECONDS)

    def close(self):
        self.channel.close()


class Session:
    """A side within a round: a project of its own, and what it has answered so far."""

    def __init__(self, side, project):
        self.side, self.project = side, project
        self.normaliser = Normaliser(project)
        self.transactions = {}
        self.ids = {}

    # --- references ---

    def resolve(self, thing):
        if isinstance(thing, list):
            return [self.resolve(each) for each in thing]
        if not isinstance(thing, dict):
            return thing
        if "$transaction" in thing:
            return self.transactions.get(thing["$transaction"], base64_of(b"none"))
        if "$version" in thing:
            return self.version(json.loads(thing["$version"]), thing["back"])
        if "$id" in thing:
            return str(self.ids.get(tuple(thing["$id"]), 1))
        return {name: self.resolve(value) for name, value in thing.items()}

    def key_text(self, key):
        return self.normaliser.key(json_format.ParseDict(key, types.Key.pb()()))

    def version(self, key, back):
        seen = self.normaliser.versions.get(self.key_text(key), [])
        return str(seen[-1 - back]) if len(seen) > back else OLD_VERSION

    # --- asking ---

    def answer(self, operation):
        """What the side says to it, normalised; an error is {"error": code, "words": …}."""
        try:
            return self.ask(operation, self.resolve(copy.deepcopy(operation["request"])))
        except grpc.RpcError as error:
            words = error.details().replace(self.project, "PROJECT")
            return {"error": error.code().name, "words": words}

    def ask(self, operation, request):
        rpc, label = operation["rpc"], operation.get("as")
        begun = self.begin_first(request)
        answer = self.side.send(rpc, self.project, request)
        if begun:
            answer.transaction = begun
        if label and getattr(answer, "transaction", b""):
            self.transactions[label] = base64_of(answer.transaction)
        if rpc == "Lookup":
            return self.normaliser.lookup(answer)
        if rpc == "RunQuery":
            return self.pages(operation, request, answer)
        if rpc == "RunAggregationQuery":
            return self.normaliser.aggregation(answer)
        if rpc == "Commit":
            keys = [self.key_text(key_of(each)) for each in request["mutations"]]
            self.note_ids(label, [each.key for each in answer.mutation_results])
            return self.normaliser.commit(answer, label, keys)
        if rpc == "AllocateIds":
            self.note_ids(label, answer.keys)
            return self.normaliser.allocate(answer, label)
        if rpc == "BeginTransaction":
            return {"transaction": bool(answer.transaction)}
        return {}

    def begin_first(self, request):
        """Datastore mode's emulator takes the locks of a read that begins a transaction in a name
        that nobody knows, so that they stay: there, it is begun before."""
        options = (
            request.get("readOptions", {}).pop("newTransaction", None)
            if (self.side.name == "firestore")
            else None
        )
        if options is None:
            return None
        begin = {"transactionOptions": options}
        begun = self.side.send("BeginTransaction", self.project, begin).transaction
        request["readOptions"]["transaction"] = base64_of(begun)
        return begun

    def note_ids(self, label, keys):
        for place, key in enumerate(keys):
            if key.path:
                self.ids[label, place] = key.path[-1].id

    def pages(self, operation, request, answer):
        """The first page, and those that `then` says."""
        pages = [self.normaliser.query(answer)]
        for step in operation.get("then", []):
            request = self.turn(request, step, answer.batch)
            if request is None:
                break
            answer = self.side.send("RunQuery", self.project, request)
            pages.append(self.normaliser.query(answer))
        merged = dict(pages[0])
        for field in ("results", "more", "skipped"):
            if "then" in operation:
                merged[field] = [page[field] for page in pages]
        return merged

    @staticmethod
    def turn(request, step, batch):
        """The request for the next page; None if there is none."""
        query, results = dict(request["query"]), batch.entity_results
        if not results:
            return None
        if step == "end":
            query["startCursor"] = base64_of(batch.end_cursor)
        elif step == "result":
            query["startCursor"] = base64_of(results[0].cursor)
        else:
            query["endCursor"] = base64_of(results[-1].cursor)
            query.pop("limit", None)
        query.pop("offset", None)
        return {**request, "query": query}

    # --- keeping sides alike ---

    def entity(self, key):
        """An entity's JSON, as it is on this side; None if there is none."""
        answer = self.side.send("Lookup", self.project, {"keys": [key]})
        found = [json_format.MessageToDict(each.entity) for each in answer.found]
        return found[0] if found else None

    def put(self, key, entity):
        mutation = {"delete": key} if entity is None else {"upsert": entity}
        request = {"mode": "NON_TRANSACTIONAL", "mutations": [mutation]}
        answer = self.side.send("Commit", self.project, request)
        text = self.key_text(key)
        self.normaliser.version(text, answer.mutation_results[0].version)

    def end_transactions(self):
        transactions, self.transactions = self.transactions, {}
        for transaction in transactions.values():
            try:
                self.side.send("Rollback", self.project, {"transaction": transaction})
            except grpc.RpcError:
                time.sleep(0)  # it had ended
