package secondfactor

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image/png"

	"github.com/pquerna/otp"
)

// QRSize is the width and height of a QR code, in pixels.
const QRSize = 256

// QR draws the key for an app's camera, as the URL of a PNG (data:).
func QR(key *otp.Key) (string, error) {
	img, err := key.Image(QRSize, QRSize)
	if err != nil {
		return "", fmt.Errorf("secondfactor: QR code: %w", err)
	}
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		return "", fmt.Errorf("secondfactor: QR code: %w", err)
	}
	return "data:image/png;base64," + base64.StdEncoding.EncodeToString(b.Bytes()), nil
}
