// Command demo runs the demo service: a login, password reset and API that
// authguard protects. Without flags it runs in development mode on
// 127.0.0.1:8080 and prints what to try.
//
// Each flag is also an environment variable: -trusted-proxies is
// AUTHDEMO_TRUSTED_PROXIES. A flag wins over its variable.
package main
