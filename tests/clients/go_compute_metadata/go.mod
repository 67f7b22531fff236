module postern/tests/clients/go_compute_metadata

go 1.26.0

require cloud.google.com/go/compute/metadata v0.10.0

require golang.org/x/sys v0.46.0 // indirect

require postern/tests/clients/serve v0.0.0

replace postern/tests/clients/serve => ../serve/go
