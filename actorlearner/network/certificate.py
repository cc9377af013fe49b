"""The certificate of a run: one file with a certificate and its key, which all roles of the run have.

It is the run's secret: both ends show this certificate, and accept no other.
"""

import datetime
import os
import ssl
from pathlib import Path

from actorlearner.errors import ConfigurationError

CERTIFICATE_VARIABLE = "ACTORLEARNER_CERTIFICATE"
"""The environment variable that holds a run's certificate in jobs whose nodes share no folder."""

_VALID_DAYS = 3650
_NAME = "actorlearner"


def make_certificate() -> bytes:
    """Returns a new self-signed certificate and its key, as PEM."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, _NAME)])
    now = datetime.datetime.now(datetime.UTC)
    day = datetime.timedelta(days=1)
    certificate = (
        x509.CertificateBuilder(issuer_name=name, subject_name=name, public_key=key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - day)  # The clocks of a run's machines differ.
        .not_valid_after(now + _VALID_DAYS * day)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    return certificate.public_bytes(serialization.Encoding.PEM) + key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def write_certificate(path: Path, certificate: bytes) -> None:
    """Writes a certificate into a new file that only this user can read.

    Raises:
      FileExistsError: there is a file of this name.
      OSError: the file cannot be written.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with open(descriptor, "wb") as file:
            file.write(certificate)
    except BaseException:  # Nothing was there before, and an empty file would be refused the next time.
        path.unlink()
        raise


def server_context(path: Path) -> ssl.SSLContext:
    """Returns TLS 1.3 for a server that accepts only clients with the same certificate."""
    return _context(ssl.PROTOCOL_TLS_SERVER, path)


def client_context(path: Path) -> ssl.SSLContext:
    """Returns TLS 1.3 for a client that trusts only a server with the same certificate."""
    return _context(ssl.PROTOCOL_TLS_CLIENT, path)


def check_certificate(path: Path) -> None:
    """Checks the file.

    Raises:
      ConfigurationError: it cannot be read, or is no certificate with its key.
    """
    try:
        server_context(path)
    except OSError as error:  # Also an ssl.SSLError, which is derived from it.
        reason = error.strerror
        if isinstance(error, ssl.SSLError) or reason is None:
            reason = "there is no certificate with its key in it"
        problem = f"--tls: {str(path)!r} cannot be used ({reason})"
        raise ConfigurationError(
            [f"{problem}; allowed: the file that `actorlearner certificate` made for this run"]
        ) from error


def _context(protocol: int, path: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(protocol)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False  # Only this one certificate is trusted, wherever its holder runs.
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_cert_chain(path)
    context.load_verify_locations(path)
    return context
