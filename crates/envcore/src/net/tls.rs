//! TLS: who the server is, and that nobody else reads along.
//!
//! A server has a certificate of somebody's, or makes a pair for itself when it starts. The
//! pair's fingerprint is told to the user, and a client that was given the fingerprint accepts
//! that certificate and no other. Only TLS 1.3 is spoken.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::crypto::{CryptoProvider, ring as provider, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    ClientConfig, ClientConnection, Connection, DigitallySignedStruct, RootCertStore, ServerConfig,
    ServerConnection, SignatureScheme,
};

use super::stream::BrokenConnection;
use crate::error::{Error, Result};

/// SHA-256 of a certificate's DER.
type Fingerprint = [u8; 32];

fn fingerprint_of(certificate: &CertificateDer<'_>) -> Fingerprint {
    let digest = ring::digest::digest(&ring::digest::SHA256, certificate);
    digest.as_ref().try_into().expect("SHA-256 has 32 bytes")
}

/// The fingerprint that `text` writes in hexadecimal digits, with or without colons.
fn read_fingerprint(text: &str) -> Option<Fingerprint> {
    let digits: String = text.trim().chars().filter(|c| *c != ':').collect();
    let pair = |at: usize| u8::from_str_radix(digits.get(2 * at..2 * at + 2)?, 16).ok();
    let bytes: Option<Vec<u8>> = (digits.len() == 64).then(|| (0..32).map(pair).collect())?;
    bytes?.try_into().ok()
}

/// What a server needs for TLS.
#[derive(Clone)]
pub struct ServerTls {
    config: Arc<ServerConfig>,
    fingerprint: Fingerprint,
}

impl ServerTls {
    /// TLS by the certificates and the key of these PEM files, the server's own certificate
    /// first.
    ///
    /// # Errors
    /// [`Error::Argument`], which names the file.
    pub fn from_files(certificate: &Path, key: &Path) -> Result<Self> {
        let chain = certificates(certificate)?;
        let unread = |error| Error::Argument(format!("{}: no private key: {error}", key.display()));
        ServerTls::new(chain, PrivateKeyDer::from_pem_slice(&pem_text(key)?).map_err(unread)?)
    }

    /// TLS by a pair that is made here, for `host`.
    ///
    /// # Errors
    /// [`Error::Env`] where no pair can be made.
    pub fn self_signed(host: &str) -> Result<Self> {
        let names = vec![host.to_string(), "localhost".into()];
        let pair = rcgen::generate_simple_self_signed(names).map_err(Error::env)?;
        let key = PrivatePkcs8KeyDer::from(pair.signing_key.serialize_der());
        ServerTls::new(vec![pair.cert.der().clone()], key.into())
    }

    fn new(chain: Vec<CertificateDer<'static>>, key: PrivateKeyDer<'static>) -> Result<Self> {
        let fingerprint = chain.first().map(fingerprint_of).unwrap_or_default();
        let unfit = |error| Error::Argument(format!("no TLS by this certificate and key: {error}"));
        let config = ServerConfig::builder_with_provider(Arc::new(provider::default_provider()))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(unfit)?
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .map_err(unfit)?;
        Ok(ServerTls { config: Arc::new(config), fingerprint })
    }

    /// The SHA-256 of the certificate, in hexadecimal digits.
    pub fn fingerprint(&self) -> String {
        self.fingerprint.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The configuration, for a server that has sockets of its own kind.
    #[cfg(feature = "openenv")]
    pub(super) fn config(&self) -> Arc<ServerConfig> {
        self.config.clone()
    }

    pub(super) fn accept(&self, socket: TcpStream) -> std::io::Result<TlsStream> {
        let session = ServerConnection::new(self.config.clone()).map_err(std::io::Error::other)?;
        Ok(TlsStream { socket, session: session.into(), ready: 0 })
    }
}

/// What a client needs for TLS.
#[derive(Clone)]
pub struct ClientTls {
    config: Arc<ClientConfig>,
}

impl ClientTls {
    /// TLS with the server whose certificate has this fingerprint, and no other.
    ///
    /// # Errors
    /// [`Error::Argument`] for what is no SHA-256.
    pub fn pinned(fingerprint: &str) -> Result<Self> {
        let Some(fingerprint) = read_fingerprint(fingerprint) else {
            let why = format!("the fingerprint '{fingerprint}' is no SHA-256: it has 64 hexadecimal digits");
            return Err(Error::Argument(why));
        };
        let crypto = Arc::new(provider::default_provider());
        let verifier = Arc::new(Pinned { fingerprint, crypto: crypto.clone() });
        let config = client_builder(crypto)?.dangerous().with_custom_certificate_verifier(verifier);
        Ok(ClientTls { config: Arc::new(config.with_no_client_auth()) })
    }

    /// TLS with servers whose certificate one of the certificates in this PEM file has signed,
    /// and which has the server's name.
    ///
    /// # Errors
    /// [`Error::Argument`], which names the file.
    pub fn signed_by(authority: &Path) -> Result<Self> {
        let mut roots = RootCertStore::empty();
        for certificate in certificates(authority)? {
            let unfit = |error| Error::Argument(format!("{}: {error}", authority.display()));
            roots.add(certificate).map_err(unfit)?;
        }
        let config = client_builder(Arc::new(provider::default_provider()))?.with_root_certificates(roots);
        Ok(ClientTls { config: Arc::new(config.with_no_client_auth()) })
    }

    pub(super) fn connect(&self, socket: TcpStream, host: &str) -> std::io::Result<TlsStream> {
        let name = ServerName::try_from(host.to_string()).map_err(std::io::Error::other)?;
        let session = ClientConnection::new(self.config.clone(), name).map_err(std::io::Error::other)?;
        Ok(TlsStream { socket, session: session.into(), ready: 0 })
    }
}

fn client_builder(
    crypto: Arc<CryptoProvider>,
) -> Result<rustls::ConfigBuilder<ClientConfig, rustls::WantsVerifier>> {
    let builder = ClientConfig::builder_with_provider(crypto);
    builder.with_protocol_versions(&[&rustls::version::TLS13]).map_err(Error::env)
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let unread = |error| Error::Argument(format!("{}: no certificate: {error}", path.display()));
    let text = pem_text(path)?;
    let read: Result<Vec<_>> = CertificateDer::pem_slice_iter(&text).map(|one| one.map_err(unread)).collect();
    let read = read?;
    if read.is_empty() {
        return Err(Error::Argument(format!("{}: there is no certificate in it", path.display())));
    }
    Ok(read)
}

/// The content of a PEM file. What is no file might have no end, or wait for ever.
fn pem_text(path: &Path) -> Result<Vec<u8>> {
    const MOST: u64 = 1 << 20;
    let unread = |why: String| Error::Argument(format!("{} is no PEM file: {why}", path.display()));
    let about = std::fs::metadata(path).map_err(|error| unread(error.to_string()))?;
    if !about.is_file() {
        return Err(unread("it is no regular file".into()));
    }
    if about.len() > MOST {
        return Err(unread(format!("it has {} bytes, and at most {MOST} are read", about.len())));
    }
    std::fs::read(path).map_err(|error| unread(error.to_string()))
}

/// Accepts one certificate, as long as it is valid. The name in it does not matter.
#[derive(Debug)]
struct Pinned {
    fingerprint: Fingerprint,
    crypto: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let shown = fingerprint_of(certificate);
        if shown != self.fingerprint {
            let shown: String = shown.iter().map(|byte| format!("{byte:02x}")).collect();
            return Err(rustls::Error::General(format!(
                "the server's certificate has another fingerprint, {shown}"
            )));
        }
        // The certificate vouches for itself; what is left to check is its time.
        let mut roots = RootCertStore::empty();
        roots.add(certificate.clone())?;
        let algorithms = self.crypto.signature_verification_algorithms.all;
        let parsed = ParsedCertificate::try_from(certificate)?;
        verify_server_cert_signed_by_trust_anchor(&parsed, &roots, &[], now, algorithms)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(rustls::Error::General("only TLS 1.3 is spoken".into()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.crypto.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.crypto.signature_verification_algorithms.supported_schemes()
    }
}

/// A TCP socket with TLS, which never blocks.
pub(super) struct TlsStream {
    pub(super) socket: TcpStream,
    session: Connection,
    /// How many bytes can be read without the socket.
    ready: usize,
}

fn is_blocked(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

impl TlsStream {
    pub(super) fn is_handshaking(&self) -> bool {
        self.session.is_handshaking()
    }

    pub(super) fn has_ready(&self) -> bool {
        self.ready > 0
    }

    /// Takes in what the socket has. Returns whether it had anything.
    pub(super) fn fill(&mut self) -> Result<bool, BrokenConnection> {
        match self.session.read_tls(&mut self.socket) {
            Ok(0) => return Err(BrokenConnection::Closed),
            Ok(_) => {}
            Err(error) if is_blocked(&error) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
        let processed = self.session.process_new_packets();
        // An alert says to the other side what was wrong.
        let flushed = self.flush();
        let state = processed.map_err(|error| BrokenConnection::Garbage(format!("no TLS: {error}")))?;
        self.ready = state.plaintext_bytes_to_read();
        flushed?;
        Ok(true)
    }

    pub(super) fn read(&mut self, bytes: &mut [u8]) -> Result<Option<usize>, BrokenConnection> {
        loop {
            match self.session.reader().read(bytes) {
                Ok(0) if !bytes.is_empty() => return Err(BrokenConnection::Closed),
                Ok(n) => {
                    self.ready = self.ready.saturating_sub(n);
                    return Ok(Some(n));
                }
                Err(error) if is_blocked(&error) => {}
                Err(error) => return Err(error.into()),
            }
            if !self.fill()? {
                return Ok(None);
            }
        }
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<Option<usize>, BrokenConnection> {
        if !self.flush()? {
            return Ok(None);
        }
        let taken = self.session.writer().write(bytes)?;
        self.flush()?;
        Ok((taken > 0).then_some(taken))
    }

    /// Sends what was encrypted. Returns whether all of it is sent.
    pub(super) fn flush(&mut self) -> Result<bool, BrokenConnection> {
        while self.session.wants_write() {
            match self.session.write_tls(&mut self.socket) {
                Ok(_) => {}
                Err(error) if is_blocked(&error) => return Ok(false),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// What a client that pins `certificate` says of it at `now`.
    fn verify(pinned: &str, certificate: &CertificateDer<'_>, now: UnixTime) -> Result<(), String> {
        let crypto = Arc::new(provider::default_provider());
        let verifier = Pinned { fingerprint: read_fingerprint(pinned).unwrap(), crypto };
        let name = ServerName::try_from("elsewhere.example").unwrap();
        let verified = verifier.verify_server_cert(certificate, &[], &name, &[], now);
        verified.map(drop).map_err(|error| error.to_string())
    }

    #[test]
    fn a_pinned_certificate_is_accepted_until_it_expires_and_no_other_is() {
        let mut params = rcgen::CertificateParams::new(vec!["localhost".into()]).unwrap();
        params.not_before = rcgen::date_time_ymd(2020, 1, 1);
        params.not_after = rcgen::date_time_ymd(2021, 1, 1);
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        let der = certificate.der();
        let pin: String = fingerprint_of(der).iter().map(|byte| format!("{byte:02X}:")).collect();
        let pin = pin.trim_end_matches(':');
        let at = |days: u64| UnixTime::since_unix_epoch(Duration::from_secs(86_400 * days));
        // The 1st of July 2020, of 2021, and of 2019.
        assert_eq!(verify(pin, der, at(18_444)), Ok(()));
        assert!(verify(pin, der, at(18_809)).unwrap_err().contains("expired"));
        assert!(verify(pin, der, at(18_078)).unwrap_err().contains("not valid yet"));
        let other = "0".repeat(64);
        assert!(verify(&other, der, at(18_444)).unwrap_err().contains("another fingerprint"));
    }

    #[test]
    fn a_fingerprint_is_64_hexadecimal_digits() {
        let pinned = |text: &str| ClientTls::pinned(text).map(drop).map_err(|error| error.to_string());
        assert!(pinned(&"ab".repeat(32)).is_ok() && pinned(&"Ab:".repeat(32)).is_ok());
        for wrong in ["", "ab", &"zz".repeat(32), &"ä".repeat(32)] {
            assert!(pinned(wrong).unwrap_err().contains("no SHA-256"), "{wrong}");
        }
    }
}
