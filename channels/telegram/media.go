package telegram

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/go-telegram/bot/models"

	"deerbot/channels"
)

// media is what a message, or one replied to in another chat, carries beside text.
type media struct {
	photo     []models.PhotoSize
	livePhoto *models.LivePhoto
	document  *models.Document
	animation *models.Animation
	audio     *models.Audio
	video     *models.Video
	videoNote *models.VideoNote
	voice     *models.Voice
	sticker   *models.Sticker
	contact   *models.Contact
	location  *models.Location
	venue     *models.Venue
	poll      *models.Poll
	dice      *models.Dice
	other     string // what else, in words
}

func mediaOf(m *models.Message) media {
	md := media{
		m.Photo, m.LivePhoto, m.Document, m.Animation, m.Audio, m.Video, m.VideoNote, m.Voice, m.Sticker, m.Contact, m.Location,
		m.Venue, m.Poll, m.Dice, "",
	}
	switch {
	case m.Story != nil:
		md.other = "a story"
	case m.PaidMedia != nil:
		md.other = "paid media"
	case m.Checklist != nil:
		md.other = "a checklist"
	case m.Game != nil:
		md.other = "a game"
	case m.Invoice != nil:
		md.other = "an invoice"
	case m.Giveaway != nil:
		md.other = "a giveaway"
	case m.RichMessage != nil && m.Text == "":
		md.other = "a rich message"
	}
	return md
}

func mediaOfReply(r *models.ExternalReplyInfo) media {
	md := media{
		r.Photo, r.LivePhoto, r.Document, r.Animation, r.Audio, r.Video, r.VideoNote, r.Voice, r.Sticker, r.Contact, r.Location,
		r.Venue, r.Poll, r.Dice, "",
	}
	if r.Story != nil {
		md.other = "a story"
	}
	return md
}

// attachments are the files. Names Telegram does not give are made from the message id, so that two photos of a chat
// never have the same one.
func (md media) attachments(msg int) []channels.Attachment {
	name := func(given, kind, ext string) string {
		if given != "" {
			return given
		}
		return fmt.Sprintf("%s_%d%s", kind, msg, ext)
	}
	mime := func(given, usual string) string {
		if given != "" {
			return given
		}
		return usual
	}
	var out []channels.Attachment
	photo := md.photo
	if md.livePhoto != nil {
		photo = md.livePhoto.Photo
	}
	if p := largest(photo); p != nil {
		out = append(out, channels.Attachment{
			ID: p.FileID, Kind: "image", Name: name("", "photo", ".jpg"), MIME: "image/jpeg", Size: int64(p.FileSize),
		})
	}
	if a := md.animation; a != nil { // comes with the same file as a document
		out = append(out, channels.Attachment{
			ID: a.FileID, Kind: "video", Name: name(a.FileName, "animation", ".mp4"), MIME: mime(a.MimeType, "video/mp4"), Size: a.FileSize,
		})
	} else if d := md.document; d != nil {
		kind := "document"
		if strings.HasPrefix(d.MimeType, "image/") {
			kind = "image"
		}
		out = append(out, channels.Attachment{
			ID: d.FileID, Kind: kind, Name: name(d.FileName, "document", ""), MIME: d.MimeType, Size: d.FileSize,
		})
	}
	if a := md.audio; a != nil {
		out = append(out, channels.Attachment{
			ID: a.FileID, Kind: "audio", Name: name(a.FileName, "audio", ".mp3"), MIME: mime(a.MimeType, "audio/mpeg"), Size: a.FileSize,
		})
	}
	if v := md.voice; v != nil { // stored as .oga, which is Ogg with Opus
		out = append(out, channels.Attachment{
			ID: v.FileID, Kind: "voice", Name: name("", "voice", ".ogg"), MIME: mime(v.MimeType, "audio/ogg"), Size: v.FileSize,
		})
	}
	if v := md.video; v != nil {
		out = append(out, channels.Attachment{
			ID: v.FileID, Kind: "video", Name: name(v.FileName, "video", ".mp4"), MIME: mime(v.MimeType, "video/mp4"), Size: v.FileSize,
		})
	}
	if v := md.videoNote; v != nil {
		out = append(out, channels.Attachment{
			ID: v.FileID, Kind: "video", Name: name("", "video_note", ".mp4"), MIME: "video/mp4", Size: int64(v.FileSize),
		})
	}
	return out
}

// largest is the size with the most pixels, then the most bytes.
func largest(sizes []models.PhotoSize) *models.PhotoSize {
	var best *models.PhotoSize
	for i := range sizes {
		p := &sizes[i]
		if best == nil || p.Width*p.Height > best.Width*best.Height ||
			p.Width*p.Height == best.Width*best.Height && p.FileSize > best.FileSize {
			best = p
		}
	}
	return best
}

// note says what is not a file.
func (md media) note() string {
	switch {
	case md.sticker != nil:
		return strings.TrimSpace("a sticker was sent: " + md.sticker.Emoji)
	case md.venue != nil: // has a location too
		return fmt.Sprintf("a place was sent: %s, %s", md.venue.Title, point(md.venue.Location))
	case md.location != nil:
		return "a location was sent: " + point(*md.location)
	case md.contact != nil:
		name := strings.TrimSpace(md.contact.FirstName + " " + md.contact.LastName)
		return fmt.Sprintf("a contact was sent: %s, %s", name, md.contact.PhoneNumber)
	case md.poll != nil:
		options := make([]string, len(md.poll.Options))
		for i, o := range md.poll.Options {
			options[i] = o.Text
		}
		return fmt.Sprintf("a poll was sent: %s (%s)", md.poll.Question, strings.Join(options, " / "))
	case md.dice != nil:
		return fmt.Sprintf("a dice was sent: %s %d", md.dice.Emoji, md.dice.Value)
	case md.other != "":
		return md.other + " was sent, which cannot be read"
	}
	return ""
}

func point(l models.Location) string {
	return strconv.FormatFloat(l.Latitude, 'f', 6, 64) + " " + strconv.FormatFloat(l.Longitude, 'f', 6, 64)
}

// medium names what a quoted message is, "" for text.
func (md media) medium() string {
	switch {
	case len(md.photo) > 0 || md.livePhoto != nil:
		return "photo"
	case md.animation != nil:
		return "animation"
	case md.document != nil:
		return "document"
	case md.audio != nil:
		return "audio"
	case md.voice != nil:
		return "voice message"
	case md.video != nil:
		return "video"
	case md.videoNote != nil:
		return "video message"
	}
	return md.note()
}
