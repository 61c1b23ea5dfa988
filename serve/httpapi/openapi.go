package httpapi

import _ "embed"

//go:embed openapi.json
var openAPI []byte

// OpenAPI is the OpenAPI 3.1 document of the service.
func OpenAPI() []byte { return openAPI }
