//! The endpoint that tells the public key of certificates.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;

use super::Api;
use arenad_api::episodes::CertificateKey;

/// `GET /v1/certificates/key`: returns the key by which this installation's certificates are verified.
pub(super) async fn key(State(api): State<Arc<Api>>) -> Json<CertificateKey> {
    Json(CertificateKey { algorithm: "ed25519".to_owned(), key: api.certifier.public().to_string() })
}
