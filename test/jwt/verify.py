"""Verifies the tokens of standard input by PyJWT: {"keys": JWKS, "tokens": [...], "issuer": ..., "at": seconds}. Prints their subjects."""

import json
import sys

import jwt

given = json.load(sys.stdin)
keys = {key.key_id: key for key in jwt.PyJWKSet.from_dict(given["keys"]).keys}
subjects = []
for token in given["tokens"]:
    key = keys[jwt.get_unverified_header(token)["kid"]]
    claims = jwt.decode(
        token,
        key.key,
        algorithms=["ES256", "EdDSA"],
        issuer=given["issuer"],
        audience=given["issuer"],
        options={"require": ["exp", "iat", "sub", "sid"]},
    )
    subjects.append(claims["sub"])
print(json.dumps(subjects))
