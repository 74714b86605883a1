"""``opgrow serve``: a model file behind a small HTTP endpoint.

`model` is what is served, `bodies` and `answers` are its two ends, `app` is about requests, `protocol` and
`server` are about connections. Everything that clients can make large or slow has a limit in `limits`.
"""
