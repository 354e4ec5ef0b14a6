module authguard/clients

go 1.26.0

require (
	authguard v0.0.0
	github.com/dunglas/httpsfv v1.1.2
	github.com/hashicorp/go-retryablehttp v0.7.8
	github.com/stretchr/testify v1.12.1
)

require (
	github.com/dchest/siphash v1.2.3 // indirect
	github.com/go-chi/chi/v5 v5.5.0 // indirect
	github.com/hashicorp/go-cleanhttp v0.5.2 // indirect
	go.yaml.in/yaml/v3 v3.0.6 // indirect
	golang.org/x/text v0.44.0 // indirect
)

replace authguard => ../
