module postern/tests/clients/serve

go 1.26.0
