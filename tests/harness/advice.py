"""What Insight.Advise answers by REST, in the form that `trestle advise --format json` has."""

import base64


def key_text(encoded):
    return base64.b64decode(encoded).decode(errors="backslashreplace")


def finding_document(found):
    document = {
        name: found[name] for name in ("rule", "title", "when", "why", "remedy", "evidence")
    }
    document["severity"] = found["severity"].lower()
    document["keys"] = [key_text(key) for key in found.get("keys", ())]
    document["better"] = [
        {"key": key_text(pair["key"]), "better": key_text(pair["betterKey"])}
        for pair in found.get("betterKeys", ())
    ]
    if "range" in found:
        ends = found["range"]
        document["range"] = {
            "start": key_text(ends.get("startKey", "")), "end": key_text(ends.get("endKey", "")),
        }  # fmt: skip
    return document


def advice_document(advice):
    return {
        "table": advice["id"],
        "sample": advice["sample"],
        "findings": [finding_document(each) for each in advice.get("findings", ())],
    }
