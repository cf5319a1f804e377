package config

import (
	"fmt"
	"regexp"
	"strings"
)

// idForm says what the ids of a platform look like.
type idForm struct {
	re   *regexp.Regexp
	want string
}

// Forms of ids. Names and handles are refused: they can be changed, given up and registered again by somebody else.
var (
	telegramID    = idForm{regexp.MustCompile(`^-?[1-9][0-9]*$`), "a numeric id, such as 123456789 for a person or -1001234567890 for a group"}
	telegramUser  = idForm{regexp.MustCompile(`^[1-9][0-9]*$`), "a person's numeric id, such as 123456789"}
	slackID       = idForm{regexp.MustCompile(`^[UWCDGTE][A-Z0-9]*[0-9][A-Z0-9]*$|^[UWCDGTE][A-Z0-9]{8,}$`), "a Slack id, such as U024BE7LH for a person or C024BE91L for a channel"}
	slackUser     = idForm{regexp.MustCompile(`^[UW][A-Z0-9]*[0-9][A-Z0-9]*$|^[UW][A-Z0-9]{8,}$`), "a person's Slack id, such as U024BE7LH"}
	discordID     = idForm{regexp.MustCompile(`^[1-9][0-9]*$`), "a numeric id, such as 80351110224678912"}
	larkID        = idForm{regexp.MustCompile(`^(ou|oc|on)_[0-9A-Za-z_-]+$`), "an id that starts with ou_ (person) or oc_ (chat)"}
	larkUser      = idForm{regexp.MustCompile(`^(ou|on)_[0-9A-Za-z_-]+$`), "a person's id, which starts with ou_"}
	webID         = idForm{regexp.MustCompile(`^[^\s]+$`), "an id without white space"}
	telegramToken = regexp.MustCompile(`^[^:]+:.+$`)
	guildCommands = regexp.MustCompile(`^(global|off|guild:[0-9]+)$`)
)

func (v *validator) channels() {
	c := &v.cfg.Channels

	v.credentials("channels.telegram", c.Telegram.Enabled, need{"token", "TELEGRAM_BOT_TOKEN", c.Telegram.Token.IsSet()})
	if v.token("channels.telegram.token", c.Telegram.Token); c.Telegram.Active() && c.Telegram.Token.IsSet() && !telegramToken.MatchString(c.Telegram.Token.Reveal()) {
		v.fault("channels.telegram.token", "is not a bot token; @BotFather gives one that begins with a number and a colon")
	}
	v.url("channels.telegram.api_url", c.Telegram.APIURL, false, "http", "https")
	v.options("channels.telegram", &c.Telegram.ChannelOptions, telegramID, telegramUser)

	v.credentials("channels.slack", c.Slack.Enabled,
		need{"bot_token", "SLACK_BOT_TOKEN", c.Slack.BotToken.IsSet()}, need{"app_token", "SLACK_APP_TOKEN", c.Slack.AppToken.IsSet()})
	v.token("channels.slack.bot_token", c.Slack.BotToken)
	v.token("channels.slack.app_token", c.Slack.AppToken)
	v.url("channels.slack.api_url", c.Slack.APIURL, false, "http", "https")
	v.options("channels.slack", &c.Slack.ChannelOptions, slackID, slackUser)

	v.credentials("channels.discord", c.Discord.Enabled, need{"token", "DISCORD_BOT_TOKEN", c.Discord.Token.IsSet()})
	v.token("channels.discord.token", c.Discord.Token)
	v.url("channels.discord.api_url", c.Discord.APIURL, false, "http", "https")
	if !guildCommands.MatchString(c.Discord.ApplicationCommands) {
		v.fault("channels.discord.application_commands", "must be global, guild:<id> or off")
	}
	v.options("channels.discord", &c.Discord.ChannelOptions, discordID, discordID)

	v.credentials("channels.lark", c.Lark.Enabled,
		need{"app_id", "LARK_APP_ID", c.Lark.AppID != ""}, need{"app_secret", "LARK_APP_SECRET", c.Lark.AppSecret.IsSet()})
	v.token("channels.lark.app_secret", c.Lark.AppSecret)
	v.url("channels.lark.base_url", c.Lark.BaseURL, false, "http", "https")
	v.options("channels.lark", &c.Lark.ChannelOptions, larkID, larkUser)

	v.options("channels.web", &c.Web.ChannelOptions, webID, webID)
}

// need is one credential of a channel.
type need struct {
	key, env string
	have     bool
}

// credentials refuses a channel that is switched on without what it needs.
func (v *validator) credentials(at string, enabled Switch, needs ...need) {
	if enabled != On {
		return
	}
	for _, n := range needs {
		if !n.have {
			v.fault(at+"."+n.key, "is missing, and %s.enabled is true; set it or %s", at, n.env)
		}
	}
}

func (v *validator) options(at string, o *ChannelOptions, any, user idForm) {
	v.ids(at+".allow", o.Allow, any)
	v.ids(at+".admins", o.Admins, user)
	v.url(at+".proxy", o.Proxy.Reveal(), true, "http", "https", "socks5", "socks5h")
}

func (v *validator) ids(key string, ids []string, form idForm) {
	seen := map[string]bool{}
	for i, id := range ids {
		at := fmt.Sprintf("%s[%d]", key, i)
		switch {
		case strings.TrimSpace(id) == "":
			v.fault(at, "is empty; want %s", form.want)
		case !form.re.MatchString(id):
			v.fault(at, "is not an id; want %s (/whoami tells yours). Names are not taken: they can change hands", form.want)
		case seen[id]:
			v.fault(at, "is here twice")
		}
		seen[id] = true
	}
}
