package discord

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"time"
)

// Interaction is a pressed button or a slash command, and what came of it.
type Interaction struct {
	ID      string
	Token   string
	At      time.Time
	Acked   bool
	Type    int // of the response
	After   time.Duration
	Text    string   // of the response
	Notices []string // follow-ups, seen by the asker alone

	late      bool
	component bool
	ch        *Channel
}

// Command is a registered application command.
type Command struct {
	Name             string            `json:"name"`
	NameLocal        map[string]string `json:"name_localizations"`
	Description      string            `json:"description"`
	DescriptionLocal map[string]string `json:"description_localizations"`
	Type             int               `json:"type"`
	Options          []Option          `json:"options"`
	Contexts         []int             `json:"contexts"`
	IntegrationTypes []int             `json:"integration_types"`
	DMPermission     *bool             `json:"dm_permission"`
	Permissions      *string           `json:"default_member_permissions"`
	NSFW             bool              `json:"nsfw"`

	ID string `json:"id"`
}

// Option of a command.
type Option struct {
	Type             int               `json:"type"`
	Name             string            `json:"name"`
	NameLocal        map[string]string `json:"name_localizations"`
	Description      string            `json:"description"`
	DescriptionLocal map[string]string `json:"description_localizations"`
	Required         bool              `json:"required"`
	Autocomplete     bool              `json:"autocomplete"`
	MaxLength        int               `json:"max_length"`
	Choices          []any             `json:"choices"`
}

var (
	commandName = regexp.MustCompile(`^[-_'\p{L}\p{N}]{1,32}$`)
	locales     = []string{"zh-CN", "zh-TW", "en-US", "en-GB", "de", "fr", "es-ES", "ja", "ko", "ru"}
)

func (s *Server) scope(c *request) (string, *apiError) {
	if c.path[1] != s.app {
		return "", &apiError{Status: 404, Code: 10002, Message: "Unknown Application"}
	}
	if len(c.path) == 3 {
		return "", nil
	}
	if !slices.ContainsFunc(s.guilds, func(g *Guild) bool { return g.ID == c.path[3] }) {
		return "", missingAccess
	}
	return c.path[3], nil
}

func (s *Server) getCommands(c *request) (any, *apiError) {
	scope, err := s.scope(c)
	if err != nil {
		return nil, err
	}
	return append([]Command{}, s.commands[scope]...), nil
}

func (s *Server) putCommands(c *request) (any, *apiError) {
	scope, err := s.scope(c)
	if err != nil {
		return nil, err
	}
	var in []Command
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	if len(in) > 100 {
		return nil, &apiError{Status: 400, Code: 30032, Message: "Maximum number of application commands reached (100)."}
	}
	seen := map[string]bool{}
	for i := range in {
		k := &in[i]
		at := fmt.Sprint(i)
		switch {
		case !commandName.MatchString(k.Name):
			return nil, invalid(at+".name", "APPLICATION_COMMAND_INVALID_NAME", "Command name is invalid")
		case seen[k.Name]:
			return nil, invalid(at+".name", "APPLICATION_COMMANDS_DUPLICATE_NAME", "Application command names must be unique")
		case len(k.Description) < 1 || utf16Len(k.Description) > 100:
			return nil, invalid(at+".description", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 100 in length.")
		case len(k.Options) > 25:
			return nil, invalid(at+".options", "BASE_TYPE_BAD_LENGTH", "Must be between 0 and 25 in length.")
		}
		if err := checkLocal(at, k.DescriptionLocal); err != nil {
			return nil, err
		}
		for j, o := range k.Options {
			at := fmt.Sprintf("%d.options.%d", i, j)
			if !commandName.MatchString(o.Name) || o.Type < 1 || o.Type > 11 {
				return nil, invalid(at+".name", "APPLICATION_COMMAND_INVALID_NAME", "Command name is invalid")
			}
			if len(o.Description) < 1 || utf16Len(o.Description) > 100 {
				return nil, invalid(at+".description", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 100 in length.")
			}
			if err := checkLocal(at, o.DescriptionLocal); err != nil {
				return nil, err
			}
		}
		seen[k.Name] = true
		k.ID = s.snowflake()
		k.Type = 1
	}
	s.puts++
	s.commands[scope] = in
	return in, nil
}

func checkLocal(at string, m map[string]string) *apiError {
	for lang, text := range m {
		if !slices.Contains(locales, lang) {
			return invalid(at+".description_localizations", "ENUM_TYPE_COERCE", "Value \""+lang+"\" is not a valid enum value.")
		}
		if text == "" || utf16Len(text) > 100 {
			return invalid(at+".description_localizations."+lang, "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 100 in length.")
		}
	}
	return nil
}

type interactionBody struct {
	Type int `json:"type"`
	Data *struct {
		Content         string           `json:"content"`
		Flags           int              `json:"flags"`
		AllowedMentions *allowedMentions `json:"allowed_mentions"`
		Components      json.RawMessage  `json:"components"`
		Choices         []any            `json:"choices"`
	} `json:"data"`
}

func (s *Server) interactionCallback(c *request) (any, *apiError) {
	it := s.interactions[c.path[1]]
	if it == nil || it.Token != c.path[2] {
		return nil, unknownAction
	}
	after := s.opt.Now().Sub(it.At)
	if it.late || after > 3*time.Second {
		return nil, unknownAction
	}
	if it.Acked {
		return nil, acknowledged
	}
	var in interactionBody
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	switch in.Type {
	case 6, 7:
		if !it.component {
			return nil, invalid("type", "BASE_TYPE_CHOICES", "not for commands")
		}
	case 5:
	case 4:
		if in.Data == nil || in.Data.Content == "" {
			return nil, emptyMessage
		}
		if utf16Len(in.Data.Content) > maxContent {
			return nil, tooLong("data.content", maxContent)
		}
		if in.Data.Flags&flagEphemeral == 0 {
			m := &stored{wire: s.blank(it.ch, s.bot)}
			m.wire.Type, m.wire.Content = 20, in.Data.Content
			it.ch.messages = append(it.ch.messages, m)
			s.ping(m, in.Data.AllowedMentions)
			s.announce("MESSAGE_CREATE", it.ch, m, c.host)
		}
		it.Text = in.Data.Content
	default:
		return nil, invalid("type", "BASE_TYPE_CHOICES", "Value must be one of (1, 4, 5, 6, 7, 8, 9).")
	}
	it.Acked, it.Type, it.After = true, in.Type, after
	return nil, nil
}

// hook finds the interaction of a webhook path.
func (s *Server) hook(c *request) (*Interaction, *apiError) {
	for _, it := range s.interactions {
		if it.Token != c.path[2] || c.path[1] != s.app {
			continue
		}
		if it.late || s.opt.Now().Sub(it.At) > 15*time.Minute {
			return nil, &apiError{Status: 401, Code: 50027, Message: "Invalid Webhook Token"}
		}
		if !it.Acked {
			return nil, unknownWebhook
		}
		return it, nil
	}
	return nil, unknownWebhook
}

func (s *Server) followup(c *request) (any, *apiError) {
	it, err := s.hook(c)
	if err != nil {
		return nil, err
	}
	var in struct {
		Content         string           `json:"content"`
		Flags           int              `json:"flags"`
		AllowedMentions *allowedMentions `json:"allowed_mentions"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	switch {
	case in.Content == "":
		return nil, emptyMessage
	case utf16Len(in.Content) > maxContent:
		return nil, tooLong("content", maxContent)
	case in.Flags&flagEphemeral == 0:
		return nil, invalid("flags", "WIRE", "this server takes follow-ups for the asker alone only")
	}
	m := s.blank(it.ch, s.bot)
	m.Content, m.Flags = in.Content, flagEphemeral
	s.ping(&stored{wire: m}, in.AllowedMentions)
	it.Notices = append(it.Notices, in.Content)
	return m, nil
}

func (s *Server) editOriginal(c *request) (any, *apiError) {
	it, err := s.hook(c)
	if err != nil {
		return nil, err
	}
	var in struct {
		Content         string           `json:"content"`
		AllowedMentions *allowedMentions `json:"allowed_mentions"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	it.Text = in.Content
	m := s.blank(it.ch, s.bot)
	m.Content = in.Content
	return m, nil
}
