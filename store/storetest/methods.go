package storetest

import (
	"context"
	"time"

	"deerbot/store"
)

// everyMethod calls each method of a store once and gives its error.
func everyMethod(ctx context.Context, s store.Store) map[string]error {
	k, now := chat("1"), time.Now()
	out := map[string]error{
		"ReplaceInbound":   s.ReplaceInbound(ctx, "a", raw(1)),
		"TakeInbound":      s.TakeInbound(ctx, "r", "a"),
		"SettleInbound":    s.SettleInbound(ctx, "a"),
		"PutConversation":  s.PutConversation(ctx, &store.Conversation{Key: k}),
		"IndexMessage":     s.IndexMessage(ctx, k, "m"),
		"MoveChat":         s.MoveChat(ctx, "c", "w", "a", "b"),
		"PutThread":        s.PutThread(ctx, &store.Thread{ID: "t"}),
		"MoveHead":         s.MoveHead(ctx, "t", "a", "b"),
		"WriteRun":         s.WriteRun(ctx, &store.RunWrite{RunID: "r"}),
		"EndPending":       s.EndPending(ctx, "r", store.RunError, nil),
		"RequestCancel":    s.RequestCancel(ctx, "r", "me"),
		"UpdateOutgoing":   s.UpdateOutgoing(ctx, outgoing("o", 0)),
		"PutPenalty":       s.PutPenalty(ctx, "s", now.Add(time.Hour)),
		"UsageBetween":     s.UsageBetween(ctx, now, now, func(store.UsageRow) bool { return true }),
		"PutUser":          s.PutUser(ctx, &store.User{ID: "u"}),
		"DeleteConnection": s.DeleteConnection(ctx, "c", "w", "a"),
		"PutSchedule":      s.PutSchedule(ctx, schedule("s", now)),
		"DeleteSchedule":   s.DeleteSchedule(ctx, "s"),
		"PutChatMessage":   s.PutChatMessage(ctx, &store.ChatMessage{Chat: "c", ID: "m"}),
		"PutChatTitle":     s.PutChatTitle(ctx, "c", "t"),
		"DeleteChat":       s.DeleteChat(ctx, "c"),
		"MarkStop":         s.MarkStop(ctx),
	}
	_, out["AcceptInbound"] = s.AcceptInbound(ctx, entry(k, "m", now))
	_, out["PendingInbound"] = s.PendingInbound(ctx, k, 1)
	_, out["CountPending"] = s.CountPending(ctx, k)
	_, out["InboundByMessage"] = s.InboundByMessage(ctx, k, "m")
	_, out["Inbound"] = s.Inbound(ctx, "a")
	_, out["UnsettledInbound"] = s.UnsettledInbound(ctx)
	_, out["PruneDedupe"] = s.PruneDedupe(ctx, now)
	_, out["Conversation"] = s.Conversation(ctx, k)
	_, out["Conversations"] = s.Conversations(ctx, "c", "w", 1)
	_, out["ConversationOfMessage"] = s.ConversationOfMessage(ctx, k, "m")
	_, out["Thread"] = s.Thread(ctx, "t")
	_, out["Checkpoints"] = s.Checkpoints(ctx, "t", "")
	_, _, out["AdmitRun"] = s.AdmitRun(ctx, pendingRun("t"), store.StrategyReject)
	_, out["ClaimRun"] = s.ClaimRun(ctx, "r", "me", now)
	_, out["TakeOverRun"] = s.TakeOverRun(ctx, "r", "me", now, now)
	_, out["RenewLease"] = s.RenewLease(ctx, "r", 1, now)
	_, out["Run"] = s.Run(ctx, "r")
	_, out["ActiveRun"] = s.ActiveRun(ctx, "t")
	_, out["PendingRuns"] = s.PendingRuns(ctx, "t")
	_, out["LiveRuns"] = s.LiveRuns(ctx)
	_, out["ThreadRuns"] = s.ThreadRuns(ctx, "t", 1)
	_, out["JournalEvents"] = s.JournalEvents(ctx, "r", 0, 1)
	_, _, out["PutOutgoing"] = s.PutOutgoing(ctx, outgoing("o", 0))
	_, out["Outgoing"] = s.Outgoing(ctx, "o")
	_, out["UnsentOutgoing"] = s.UnsentOutgoing(ctx)
	_, out["RunOutgoing"] = s.RunOutgoing(ctx, "r")
	_, out["PruneOutgoing"] = s.PruneOutgoing(ctx, now)
	_, out["Penalties"] = s.Penalties(ctx, now)
	_, out["ThreadArtifacts"] = s.ThreadArtifacts(ctx, "t")
	_, out["RunArtifacts"] = s.RunArtifacts(ctx, "r")
	_, out["RunUsage"] = s.RunUsage(ctx, "r")
	_, out["User"] = s.User(ctx, "u")
	_, out["PutConnection"] = s.PutConnection(ctx, &store.Connection{UserID: "u"})
	_, out["ConnectionOf"] = s.ConnectionOf(ctx, "c", "w", "a")
	_, out["UserConnections"] = s.UserConnections(ctx, "u")
	_, out["Schedule"] = s.Schedule(ctx, "s")
	_, out["Schedules"] = s.Schedules(ctx, k)
	_, out["DueSchedules"] = s.DueSchedules(ctx, now, 1)
	_, out["ChatMessage"] = s.ChatMessage(ctx, "c", "m")
	_, out["ChatMessages"] = s.ChatMessages(ctx, "c", 0, 1)
	_, out["Chats"] = s.Chats(ctx, 1)
	_, out["MarkStart"] = s.MarkStart(ctx, now, now)
	return out
}
