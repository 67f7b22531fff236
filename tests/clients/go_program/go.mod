module postern/tests/clients/go_program

go 1.26.0
