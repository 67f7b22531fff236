module postern/tests/clients/go_oauth2

go 1.26.0

require golang.org/x/oauth2 v0.38.0

require cloud.google.com/go/compute/metadata v0.3.0 // indirect

require postern/tests/clients/serve v0.0.0

replace postern/tests/clients/serve => ../serve/go
